//! The C functions, wrapped in owning types, as a Rust program would wrap them.

mod lease;
mod log;
mod told;

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use redlock::ffi::fencing::RedLock_SetFencing;
use redlock::ffi::handover::{RedLock_Adopt, RedLock_Detach};
use redlock::ffi::inspect::{RedLock_Inspect, RedLockInfo};
use redlock::ffi::language::RedLock_SetLanguage;
use redlock::ffi::servers::{RedLock_Servers, RedLock_SetFailoverGuard, RedLock_SetRestartGuard};
use redlock::ffi::shared_lock::RedLock_Downgrade;
use redlock::ffi::stats::{RedLock_GetStats, RedLock_SetTracing, RedLock_StatsText, RedLockStats};
use redlock::ffi::status::RedLockStatus;
use redlock::ffi::waking::RedLock_SetWaking;
use redlock::ffi::{
    RedLock, RedLock_AddServerUrl, RedLock_Confirm, RedLock_Connect, RedLock_ContinueLock,
    RedLock_ErrorMessage, RedLock_Extend, RedLock_Free, RedLock_IsLocked, RedLock_Lock,
    RedLock_New, RedLock_SetClockDriftFactor, RedLock_SetRetry, RedLock_SetTimeouts,
    RedLock_TryLock, RedLock_Unlock,
};

pub(crate) use self::lease::Lease;
pub(crate) use self::log::Log;
pub(crate) use self::told::{Known, Sight, no_info, no_server_info, no_stats};
use super::servers::Server;
use super::wait::wait_until;

/// A `RedLock`, freed with its owner.
pub(crate) struct Manager {
    raw: *mut RedLock,
}

// SAFETY: the header allows any number of threads to lock through one manager at once.
unsafe impl Send for Manager {}
// SAFETY: as above.
unsafe impl Sync for Manager {}

impl Manager {
    /// A manager without servers.
    pub(crate) fn new() -> Self {
        let raw = RedLock_New();
        assert!(!raw.is_null());
        Self { raw }
    }

    /// A manager of these servers. It trusts their authority if they use TLS.
    pub(crate) fn of(servers: &[Server]) -> Self {
        let urls: Vec<_> = servers.iter().map(Server::url).collect();
        let manager = Self::of_urls(&urls);
        if let Some(file) = servers.iter().find_map(Server::authority_file) {
            let status = manager.set_tls_ca(Some(&file));
            assert_eq!(status, RedLockStatus::REDLOCK_OK, "{}", manager.message());
        }
        manager
    }

    /// A manager of the servers with these URLs.
    pub(crate) fn of_urls(urls: &[String]) -> Self {
        let manager = Self::new();
        for url in urls {
            let status = manager.add(url, 0);
            assert_eq!(status, RedLockStatus::REDLOCK_OK, "{url}: {}", manager.message());
        }
        manager
    }

    /// A manager of the servers at these addresses ("127.0.0.1:6379").
    pub(crate) fn at(addresses: &[String]) -> Self {
        let urls: Vec<_> = addresses.iter().map(|it| format!("redis://{it}")).collect();
        Self::of_urls(&urls)
    }

    pub(crate) fn raw(&self) -> *mut RedLock {
        self.raw
    }

    pub(crate) fn add(&self, host_or_url: &str, port: i32) -> RedLockStatus {
        let host_or_url = string(host_or_url);
        // SAFETY: the manager and the string are alive.
        unsafe { RedLock_AddServerUrl(self.raw, host_or_url.as_ptr(), port) }
    }

    pub(crate) fn connect(&self, timeout_ms: i64) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_Connect(self.raw, timeout_ms) }
    }

    /// Returns when every server is connected and has a vote. Without this, a lock is taken as soon as a quorum is
    /// connected, without the servers that are not connected yet.
    #[track_caller]
    pub(crate) fn connect_to_all(&self) {
        wait_until("all servers are connected", || {
            self.connect(0) == RedLockStatus::REDLOCK_OK && self.servers().iter().all(|it| it.votes)
        });
    }

    pub(crate) fn set_retry(&self, count: i32, delay_ms: i32) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetRetry(self.raw, count, delay_ms) }
    }

    pub(crate) fn set_timeouts(&self, connect_ms: i64, reply_ms: i64) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetTimeouts(self.raw, connect_ms, reply_ms) }
    }

    /// Uses the default for both times: the longest TTL in use, and the longest time for which a server has
    /// no vote.
    pub(crate) fn set_restart_guard(&self, mode: i32) -> RedLockStatus {
        self.set_restart_guard_for(mode, 0, 0)
    }

    pub(crate) fn set_restart_guard_for(
        &self,
        mode: i32,
        longest_ttl_ms: i64,
        cap_ms: i64,
    ) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetRestartGuard(self.raw, mode, longest_ttl_ms, cap_ms) }
    }

    pub(crate) fn set_failover_guard(&self, enabled: bool) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetFailoverGuard(self.raw, enabled) }
    }

    pub(crate) fn set_fencing(&self, enabled: bool) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetFencing(self.raw, enabled) }
    }

    pub(crate) fn set_waking(&self, enabled: bool) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetWaking(self.raw, enabled) }
    }

    pub(crate) fn set_language(&self, language: i32) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetLanguage(self.raw, language) }
    }

    pub(crate) fn set_clock_drift_factor(&self, factor: f64) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetClockDriftFactor(self.raw, factor) }
    }

    /// Records the manager's log lines for as long as the log is kept.
    pub(crate) fn log(&self) -> Log<'_> {
        Log::start(self)
    }

    pub(crate) fn message(&self) -> String {
        // SAFETY: the manager is alive; its message is a C string that is read at once.
        discreet(unsafe { owned(RedLock_ErrorMessage(self.raw)) })
    }

    pub(crate) fn lock(
        &self,
        resource: impl Into<Vec<u8>>,
        ttl_ms: i64,
        lease: &Lease,
    ) -> RedLockStatus {
        let resource = string(resource);
        // SAFETY: the manager, the lease and the string are alive.
        unsafe { RedLock_Lock(self.raw, resource.as_ptr(), ttl_ms, lease.raw) }
    }

    pub(crate) fn try_lock(
        &self,
        resource: impl Into<Vec<u8>>,
        ttl_ms: i64,
        wait_ms: i64,
        lease: &Lease,
    ) -> RedLockStatus {
        let resource = string(resource);
        // SAFETY: the manager, the lease and the string are alive.
        unsafe { RedLock_TryLock(self.raw, resource.as_ptr(), ttl_ms, wait_ms, lease.raw) }
    }

    pub(crate) fn continue_lock(
        &self,
        resource: impl Into<Vec<u8>>,
        ttl_ms: i64,
        lease: &Lease,
    ) -> RedLockStatus {
        let resource = string(resource);
        // SAFETY: the manager, the lease and the string are alive.
        unsafe { RedLock_ContinueLock(self.raw, resource.as_ptr(), ttl_ms, lease.raw) }
    }

    pub(crate) fn extend(&self, lease: &Lease, ttl_ms: i64) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_Extend(self.raw, lease.raw, ttl_ms) }
    }

    pub(crate) fn unlock(&self, lease: &Lease) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_Unlock(self.raw, lease.raw) }
    }

    pub(crate) fn downgrade(&self, lease: &Lease) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_Downgrade(self.raw, lease.raw) }
    }

    pub(crate) fn confirm(&self, lease: &Lease, least_ms: i64) -> RedLockStatus {
        // SAFETY: the manager and the lease are alive.
        unsafe { RedLock_Confirm(self.raw, lease.raw, least_ms) }
    }

    /// The ticket of a lock that is given away, or the status of the failed call.
    pub(crate) fn detach(&self, lease: &Lease) -> Result<String, RedLockStatus> {
        self.detach_into(lease, 100_000)
    }

    /// The same with a buffer of this size.
    pub(crate) fn detach_into(&self, lease: &Lease, room: usize) -> Result<String, RedLockStatus> {
        let mut ticket = vec![b'?'; room.max(1)];
        // SAFETY: the manager and the lease are alive, and the buffer has this size.
        let status =
            unsafe { RedLock_Detach(self.raw, lease.raw, ticket.as_mut_ptr().cast(), room) };
        if status != RedLockStatus::REDLOCK_OK {
            assert!(ticket.iter().all(|&it| it == b'?'), "a call that failed wrote something");
            return Err(status);
        }
        let ticket = CStr::from_bytes_until_nul(&ticket).expect("it ends with a NUL");
        Ok(ticket.to_str().expect("ASCII").to_owned())
    }

    pub(crate) fn adopt(&self, ticket: &str, lease: &Lease) -> RedLockStatus {
        let ticket = string(ticket);
        // SAFETY: the manager, the lease and the string are alive.
        unsafe { RedLock_Adopt(self.raw, ticket.as_ptr(), lease.raw) }
    }

    /// What the call reports of a resource, or the status of the failed call and its message.
    pub(crate) fn inspect(
        &self,
        resource: impl AsRef<[u8]>,
    ) -> Result<Sight, (RedLockStatus, String)> {
        self.inspect_permits(resource, 0)
    }

    /// The same for a semaphore with this number of permits.
    pub(crate) fn inspect_permits(
        &self,
        resource: impl AsRef<[u8]>,
        permits: i32,
    ) -> Result<Sight, (RedLockStatus, String)> {
        let (size, mut info) = (resource.as_ref().len(), no_info());
        info.permits = permits;
        let resource = [resource.as_ref(), &[0]].concat();
        info.locked = 1;
        // SAFETY: the manager and the string are alive, and the struct may be written to.
        let status =
            unsafe { RedLock_Inspect(self.raw, resource.as_ptr().cast(), size, &raw mut info) };
        let words = info.words.map(|it| it.to_ne_bytes()[0]);
        let words = CStr::from_bytes_until_nul(&words).expect("it ends with a NUL");
        let words = words.to_str().expect("UTF-8").to_owned();
        if status != RedLockStatus::REDLOCK_OK {
            assert_eq!((info.locked, info.remaining_ms), (0, 0), "a call that failed");
            return Err((status, words));
        }
        let RedLockInfo { locked, mode, remaining_ms, readers, permits_taken, .. } = info;
        assert_eq!(info.permits, permits, "it is left as it was");
        Ok(Sight { locked: locked == 1, mode, remaining_ms, readers, permits_taken, words })
    }

    /// The answer, or the status of the failed call.
    pub(crate) fn is_locked(&self, resource: impl Into<Vec<u8>>) -> Result<bool, RedLockStatus> {
        let resource = string(resource);
        let mut locked = false;
        // SAFETY: the manager and the string are alive, and `locked` may be written to.
        match unsafe { RedLock_IsLocked(self.raw, resource.as_ptr(), &raw mut locked) } {
            RedLockStatus::REDLOCK_OK => Ok(locked),
            status => {
                assert!(!locked, "a call that failed said that it is locked");
                Err(status)
            }
        }
    }

    /// The counters.
    pub(crate) fn stats(&self) -> RedLockStats {
        let mut stats = no_stats();
        // SAFETY: the manager is alive, and the struct may be written to.
        let status = unsafe { RedLock_GetStats(self.raw, &raw mut stats) };
        assert_eq!(status, RedLockStatus::REDLOCK_OK, "{}", self.message());
        stats
    }

    /// The counters as text.
    pub(crate) fn stats_text(&self) -> String {
        let mut text: Vec<u8> = Vec::new();
        loop {
            // SAFETY: the manager is alive, and the buffer has this size.
            let size = unsafe { RedLock_StatsText(self.raw, text.as_mut_ptr().cast(), text.len()) };
            if size < text.len() {
                text.truncate(size);
                return String::from_utf8(text).expect("UTF-8");
            }
            text = vec![b'?'; size + 1];
        }
    }

    pub(crate) fn set_tracing(&self, events: i32) -> RedLockStatus {
        // SAFETY: the manager is alive.
        unsafe { RedLock_SetTracing(self.raw, events) }
    }

    /// What is known of each server.
    pub(crate) fn servers(&self) -> Vec<Known> {
        let mut count = 0;
        // SAFETY: the manager is alive, and nothing is written without a buffer.
        let status = unsafe { RedLock_Servers(self.raw, ptr::null_mut(), &raw mut count) };
        assert_eq!(status, RedLockStatus::REDLOCK_OK, "{}", self.message());
        let mut infos = vec![no_server_info(); count];
        // SAFETY: the manager is alive, and the buffer has room for this number.
        let status = unsafe { RedLock_Servers(self.raw, infos.as_mut_ptr(), &raw mut count) };
        assert_eq!(status, RedLockStatus::REDLOCK_OK, "{}", self.message());
        assert_eq!(count, infos.len());
        infos.iter().map(Known::of).collect()
    }

    /// Takes a lock that is free, in a lease of its own.
    #[track_caller]
    pub(crate) fn take(&self, resource: &str, ttl_ms: i64) -> Lease {
        let lease = Lease::new();
        let status = self.lock(resource, ttl_ms, &lease);
        assert_eq!(status, RedLockStatus::REDLOCK_OK, "{resource}: {}", lease.message());
        lease
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: it was made by RedLock_New, and is freed once.
        unsafe { RedLock_Free(self.raw) }
    }
}
fn string(bytes: impl Into<Vec<u8>>) -> CString {
    CString::new(bytes).expect("no NUL in it")
}

/// Text for a person, in which no test may ever find a token.
#[track_caller]
fn discreet(words: String) -> String {
    let mut digits = 0;
    for byte in words.bytes() {
        digits = if matches!(byte, b'0'..=b'9' | b'A'..=b'F') { digits + 1 } else { 0 };
        assert!(digits < 20, "half a token or more: {words}");
    }
    words
}

/// # Safety
/// The pointer must be that of a C string.
unsafe fn owned(text: *const c_char) -> String {
    assert!(!text.is_null(), "a string of the library is never NULL");
    // SAFETY: not NULL, and otherwise what the caller vouches for.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
