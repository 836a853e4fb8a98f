/*
 * Synchronization that ThreadSanitizer cannot see in Rust's standard library, which is not compiled
 * for it. The slow paths of a mutex and a condition variable are in there, and so are the
 * synchronizations between threads. The fast paths are inlined into the library, and seen. Linked
 * with --wrap for both functions, whose names are given as macros.
 */
void __tsan_acquire(void *address);
void __tsan_release(void *address);

void lock_contended(void *mutex) __asm__("__real_" LOCK_CONTENDED);
void seen_lock_contended(void *mutex) __asm__("__wrap_" LOCK_CONTENDED);
void condvar_wait(void *condvar, void *mutex) __asm__("__real_" CONDVAR_WAIT);
void seen_condvar_wait(void *condvar, void *mutex) __asm__("__wrap_" CONDVAR_WAIT);

void seen_lock_contended(void *mutex)
{
    lock_contended(mutex);
    __tsan_acquire(mutex);
}

void seen_condvar_wait(void *condvar, void *mutex)
{
    __tsan_release(mutex);
    condvar_wait(condvar, mutex);
    __tsan_acquire(mutex);
}
