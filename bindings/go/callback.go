package redlock

/*
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <redlock.h>

// Functions that Go exports have no const in their parameters, and a handle is a number.
bool redlockGoPassword(char *server, char *password, size_t size, uintptr_t function);
void redlockGoLog(int32_t level, char *message, uintptr_t function);

static bool redlock_go_password(const char *server, char *password, size_t size, void *function) {
	return redlockGoPassword((char *)server, password, size, (uintptr_t)function);
}

static void redlock_go_log(int32_t level, const char *message, void *function) {
	redlockGoLog(level, (char *)message, (uintptr_t)function);
}

static RedLockStatus redlock_go_set_password(RedLock *rl, const char *user, uintptr_t function) {
	return RedLock_SetPasswordCallback(rl, user, redlock_go_password, (void *)function, NULL);
}

static RedLockStatus redlock_go_set_logger(RedLock *rl, uintptr_t function) {
	return RedLock_SetLogger(rl, redlock_go_log, (void *)function, NULL);
}
*/
import "C"

import "runtime/cgo"

func setPasswordFunc(rl *C.RedLock, user *C.char, f cgo.Handle) C.RedLockStatus {
	return C.redlock_go_set_password(rl, user, C.uintptr_t(f))
}

func setLogger(rl *C.RedLock, f cgo.Handle) C.RedLockStatus {
	return C.redlock_go_set_logger(rl, C.uintptr_t(f))
}
