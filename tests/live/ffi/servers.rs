//! The array that RedLock_Servers fills.

use std::ptr;

use redlock::ffi::servers::{RedLock_Servers, RedLockServerInfo};
use redlock::ffi::status::RedLockStatus::{REDLOCK_INVALID_ARGUMENT, REDLOCK_OK};

use crate::support::Manager;
use crate::support::client::no_server_info;

const SIZE: usize = size_of::<RedLockServerInfo>();

fn manager() -> Manager {
    Manager::at(&[1, 2, 3].map(|port| format!("127.0.0.1:{port}")))
}

fn name(info: &RedLockServerInfo) -> String {
    let letters = info.name.iter().map(|it| it.to_ne_bytes()[0]).take_while(|&it| it != 0);
    String::from_utf8(letters.collect()).expect("it is UTF-8")
}

#[test]
fn the_array_of_servers_is_filled_to_its_room() {
    let manager = manager();
    for room in 0..5 {
        let mut infos = [no_server_info(); 6];
        let mut count = room;
        // SAFETY: the manager lives, and the array has room for the stated number of structs.
        let status = unsafe { RedLock_Servers(manager.raw(), infos.as_mut_ptr(), &raw mut count) };
        assert_eq!((status, count), (REDLOCK_OK, 3), "{}", manager.message());
        for (place, info) in infos.iter().enumerate() {
            let is_filled = place < room.min(3);
            let expected =
                if is_filled { format!("127.0.0.1:{}", place + 1) } else { String::new() };
            assert_eq!(name(info), expected, "room for {room}");
            assert_eq!(info.size, SIZE);
        }
    }
    let nobody = Manager::new();
    let mut count = 0;
    // SAFETY: the manager lives, and a count of zero needs no array.
    let status = unsafe { RedLock_Servers(nobody.raw(), ptr::null_mut(), &raw mut count) };
    assert_eq!((status, count), (REDLOCK_OK, 0));
}

/// A program that was built with a later header has a larger struct.
#[test]
fn fields_of_a_later_version_become_zero() {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Later {
        info: RedLockServerInfo,
        more: [u64; 3],
    }
    let manager = manager();
    let mut infos = [Later { info: no_server_info(), more: [7; 3] }; 4];
    infos[0].info.size = size_of::<Later>();
    let mut count = 3;
    // SAFETY: the manager lives, and there is room for three structs of this size.
    let status =
        unsafe { RedLock_Servers(manager.raw(), infos.as_mut_ptr().cast(), &raw mut count) };
    assert_eq!((status, count), (REDLOCK_OK, 3), "{}", manager.message());
    for (place, it) in infos[..3].iter().enumerate() {
        assert_eq!(name(&it.info), format!("127.0.0.1:{}", place + 1));
        assert_eq!((it.info.size, it.more), (size_of::<Later>(), [0; 3]));
    }
    assert_eq!(infos[3].more, [7; 3], "nothing behind them is touched");
}

#[test]
fn an_impossible_size_is_refused() {
    let manager = manager();
    for size in [0, 1, SIZE - 1, 64 * 1024 + 1] {
        let mut info = RedLockServerInfo { size, ..no_server_info() };
        let mut count = 1;
        // SAFETY: the manager lives, and the size is checked before anything is written.
        let status = unsafe { RedLock_Servers(manager.raw(), &raw mut info, &raw mut count) };
        assert_eq!((status, count), (REDLOCK_INVALID_ARGUMENT, 1));
        let words =
            format!("infos->size is {size}: initialize the struct with REDLOCK_SERVER_INFO_INIT");
        assert_eq!(manager.message(), words);
        assert!(name(&info).is_empty());
    }
}
