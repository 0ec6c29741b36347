// Threads that help each other within one network.
//
// A gang belongs to the thread that trains a network, its leader; threads without a network of
// their own join it and take tasks until there is something better to do. Which thread does what is
// left to chance, because no result depends on it. A step of training is some ten microseconds
// long, so those who wait for the next tasks turn round and round for a while before they go to
// sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "kernel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mvenet {

class Gang {
public:
    explicit Gang(int threads) : crew_{{&Gang::run, threads}, this} {}

    Crew* crew() { return &crew_; }

    // Take tasks until `leave` says so; for threads other than the leader. `leave` is asked now and
    // then, and at once after wake().
    template <class Leave> void help(Leave leave) {
        const int place = members_.fetch_add(1) + 1;
        std::uint64_t last = 0;
        for (int idle = 0; !leave();) {
            const Round now = read(last);
            if (now.number != last) {
                work(now, place);
                last = now.number;
                idle = 0;
            } else if (++idle < patience) {
                pause(idle);
            } else {
                sleep(leave, last);
                idle = 0;
            }
        }
        members_.fetch_sub(1);
    }

    int members() const { return members_.load(std::memory_order_relaxed); }

    void wake() {
        {
            const std::lock_guard lock(mutex_);
        }
        changed_.notify_all();
    }

private:
    using Task = void (*)(void*, int);
    struct Link : Crew {
        Gang* gang;
    };
    static constexpr int patience = 60000;  // pauses, about a millisecond in all

    static void run(Crew* crew, int tasks, Task task, void* context) {
        static_cast<Link*>(crew)->gang->lead(tasks, task, context);
    }

    // Tasks that are shared at one time. Its number is even; odd while the next is written.
    struct Round {
        std::uint64_t number;
        Task task;
        void* context;
        int tasks;
    };

    void lead(int tasks, Task task, void* context) {
        if (members() == 0) {
            for (int i = 0; i < tasks; ++i) task(context, i);
            return;
        }
        const std::uint64_t number = number_.load(std::memory_order_relaxed) + 2;
        number_ = number - 1;
        task_.store(task, std::memory_order_release);
        context_.store(context, std::memory_order_release);
        tasks_.store(tasks, std::memory_order_release);
        done_.store(0, std::memory_order_relaxed);
        number_ = number;
        if (asleep_ > 0) wake();
        work({number, task, context, tasks}, 0);
        const int claims = claims_of(tasks);
        for (int idle = 0; done_.load(std::memory_order_acquire) < claims; ++idle) pause(idle);
    }

    // What is shared now, or `last` again while that changes.
    Round read(std::uint64_t last) const {
        const Round nothing{last, nullptr, nullptr, 0};
        const std::uint64_t number = number_.load(std::memory_order_acquire);
        if (number == last || number % 2 == 1) return nothing;
        const Round round{number, task_.load(std::memory_order_acquire),
                          context_.load(std::memory_order_acquire),
                          tasks_.load(std::memory_order_acquire)};
        return number_.load(std::memory_order_acquire) == number ? round : nothing;
    }

    // Tasks are taken a few at a time: so many that no thread is left waiting for long.
    int claims_of(int tasks) const {
        const int most = 4 * crew_.threads < most_claims ? 4 * crew_.threads : most_claims;
        return tasks < most ? tasks : most;
    }

    // Take tasks of a round until there are none left: first those that this place took the last
    // time, because what they need is in its cache. A claim holds the number of the round in which
    // it was made: whoever comes late, with a round that is over, finds all of them taken.
    void work(const Round& round, int place) {
        const int claims = claims_of(round.tasks);
        const int first = claims * place / (members() + 1) % (claims ? claims : 1);
        for (int j = 0; j < claims; ++j) {
            const int c = first + j < claims ? first + j : first + j - claims;
            std::uint64_t before = claims_[c].load(std::memory_order_relaxed);
            if (before >= round.number || !claims_[c].compare_exchange_strong(before, round.number))
                continue;
            const auto end = std::int64_t(c + 1) * round.tasks / claims;
            for (auto i = std::int64_t(c) * round.tasks / claims; i < end; ++i)
                round.task(round.context, int(i));
            done_.fetch_add(1, std::memory_order_release);
        }
    }

    static void pause(int idle) {
        // Long waits mean that somebody else needs the core; to yield in short ones would give it
        // away.
        if (idle > 20000 && idle % 16 == 0) return std::this_thread::yield();
#if defined(__x86_64__)
        _mm_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("isb");
#endif
    }

    template <class Leave> void sleep(Leave leave, std::uint64_t last) {
        std::unique_lock lock(mutex_);
        ++asleep_;
        changed_.wait(lock, [&] { return leave() || number_ != last; });
        --asleep_;
    }

    // Each on a cache line of its own: who waits for one must not slow down who changes another.
    template <class T> struct alignas(64) Line : std::atomic<T> {
        using std::atomic<T>::atomic;
        using std::atomic<T>::operator=;
    };
    static constexpr int most_claims = 256;
    Link crew_;
    Line<std::uint64_t> number_{0};
    Line<Task> task_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<int> tasks_{0};
    Line<int> done_{0}, members_{0}, asleep_{0};
    Line<std::uint64_t> claims_[most_claims]{};
    std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace mvenet
