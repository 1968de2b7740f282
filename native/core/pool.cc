// The pool: one job at a time, parts handed out by a counter, workers asleep in between.

#include "core/pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace thinwire::pool_detail {
namespace {

struct Pool {
  std::mutex caller;  // held by whoever uses the workers
  std::mutex mutex;
  std::condition_variable wake, done;
  int workers = 0;   // threads that exist
  int wanted = 0;    // workers that may still join the job
  int running = 0;   // workers that work on it
  int parts = 0;
  void (*work)(void*, int) = nullptr;
  void* context = nullptr;
  std::atomic<int> next{0};

  void take_parts() {
    for (int part = next.fetch_add(1); part < parts; part = next.fetch_add(1)) work(context, part);
  }

  void live() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return wanted > 0; });
      --wanted;
      ++running;
      lock.unlock();
      take_parts();
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }

  void run(int helpers, int count, void (*function)(void*, int), void* argument) {
    std::unique_lock lock(mutex);
    try {
      for (; workers < helpers; ++workers) std::thread([this] { live(); }).detach();
    } catch (const std::system_error&) {
      // No more threads to be had: those that exist, and the caller, do it.
    }
    parts = count;
    work = function;
    context = argument;
    next.store(0);
    wanted = std::min(helpers, workers);
    lock.unlock();
    wake.notify_all();
    take_parts();
    lock.lock();
    wanted = 0;  // who has not woken up by now need not
    done.wait(lock, [&] { return running == 0; });
  }
};

// Never destroyed: workers may outlive the static objects of the process. A forked child has none of its parent's
// threads, and perhaps a lock that one of them held, so it starts with a pool of its own.
std::atomic<Pool*> current{nullptr};

Pool& the_pool() {
  static const bool first = [] {
    current.store(new Pool);
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { current.store(new Pool); });
#endif
    return true;
  }();
  static_cast<void>(first);
  return *current.load();
}

}  // namespace

void run(int threads, int parts, void (*work)(void*, int), void* context) {
  Pool& pool = the_pool();
  std::unique_lock caller(pool.caller, std::try_to_lock);
  if (!caller.owns_lock()) {
    for (int part = 0; part < parts; ++part) work(context, part);
    return;
  }
  pool.run(std::min({threads, parts, kMostThreads}) - 1, parts, work, context);
}

}  // namespace thinwire::pool_detail
