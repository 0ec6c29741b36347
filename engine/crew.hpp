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
        members_.fetch_add(1);
        int idle = 0;
        while (!leave()) {
            if (work()) {
                idle = 0;
            } else if (++idle < patience) {
                pause(idle);
            } else {
                sleep(leave);
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
    static constexpr int patience = 4000;  // pauses, some hundred microseconds in all

    static void run(Crew* crew, int tasks, Task task, void* context) {
        static_cast<Link*>(crew)->gang->lead(tasks, task, context);
    }

    // A ticket is the number of the round and of the next task. The round's task and context are
    // read before a task is taken: if the ticket is still the same when it is taken, so were they.
    void lead(int tasks, Task task, void* context) {
        if (members() == 0) {
            for (int i = 0; i < tasks; ++i) task(context, i);
            return;
        }
        task_.store(task, std::memory_order_relaxed);
        context_.store(context, std::memory_order_relaxed);
        tasks_.store(tasks, std::memory_order_relaxed);
        done_.store(0, std::memory_order_relaxed);
        ticket_.store(++round_ << 32, std::memory_order_seq_cst);
        if (asleep_.load(std::memory_order_seq_cst) > 0) wake();
        while (work()) {
        }
        for (int idle = 0; done_.load(std::memory_order_acquire) < tasks; ++idle) pause(idle);
        ticket_.store(round_ << 32 | 0xffffffff, std::memory_order_relaxed);  // nothing to take
    }

    // Do one task; false if there is none.
    bool work() {
        std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
        for (;;) {
            const Task task = task_.load(std::memory_order_relaxed);
            void* const context = context_.load(std::memory_order_relaxed);
            const auto index = ticket & 0xffffffff;
            if (index >= std::uint64_t(tasks_.load(std::memory_order_relaxed))) return false;
            if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire))
                continue;
            task(context, int(index));
            done_.fetch_add(1, std::memory_order_release);
            return true;
        }
    }

    static void pause(int idle) {
        if (idle % 64 == 63) return std::this_thread::yield();  // somebody else may need the core
#if defined(__x86_64__)
        _mm_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("isb");
#endif
    }

    template <class Leave> void sleep(Leave leave) {
        std::unique_lock lock(mutex_);
        asleep_.fetch_add(1, std::memory_order_seq_cst);
        const auto idle = [&] {
            const std::uint64_t ticket = ticket_.load(std::memory_order_seq_cst);
            return (ticket & 0xffffffff) >= std::uint64_t(tasks_.load(std::memory_order_relaxed));
        };
        changed_.wait(lock, [&] { return leave() || !idle(); });
        asleep_.fetch_sub(1);
    }

    Link crew_;
    std::atomic<std::uint64_t> ticket_{0xffffffff};
    std::atomic<Task> task_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<int> tasks_{0}, done_{0}, members_{0}, asleep_{0};
    std::uint64_t round_ = 0;  // the leader's
    std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace mvenet
