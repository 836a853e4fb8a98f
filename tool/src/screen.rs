//! A page in the terminal that is redrawn. When the page ends, the terminal is as it was before.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};

use crate::keys;

/// The size of a page if the terminal does not report its size.
const WIDTH: usize = 80;
const HEIGHT: usize = 24;

/// The terminal, while the page is shown.
pub(crate) struct Screen {
    old: Termios,
    is_over: Arc<AtomicBool>,
    /// Ctrl-Z was pressed: the shell must have its own page while this process is stopped.
    is_to_stop: Arc<AtomicBool>,
}

impl Screen {
    /// `None` if there is no terminal.
    pub(crate) fn open() -> Option<Self> {
        let (input, output) = (io::stdin(), io::stdout());
        if !input.is_terminal() || !output.is_terminal() {
            return None;
        }
        let old = tcgetattr(&input).ok()?;
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_over)).ok()?;
        }
        let is_to_stop = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGTSTP, Arc::clone(&is_to_stop)).ok()?;
        let screen = Self { old, is_over, is_to_stop };
        screen.enter();
        Some(screen)
    }

    /// Switches to a page other than the shell's, without a cursor.
    fn enter(&self) {
        let mut raw = self.old.clone();
        raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &raw);
        let _ = write!(io::stdout(), "\x1b[?1049h\x1b[?25l");
        let _ = io::stdout().flush();
    }

    fn leave(&self) {
        let _ = write!(io::stdout(), "\x1b[?25h\x1b[?1049l");
        let _ = io::stdout().flush();
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.old);
    }

    /// Shows the page, as far as it fits.
    pub(crate) fn draw(&self, page: &str) {
        let (columns, rows) = size();
        let lines = page.lines().take(rows.saturating_sub(1));
        let cut = lines.map(|line| line.chars().take(columns).collect::<String>());
        let text = cut.map(|line| format!("{line}\x1b[K\r\n")).collect::<String>();
        let mut output = io::stdout().lock();
        let _ = write!(output, "\x1b[H{text}\x1b[J");
        let _ = output.flush();
    }

    /// Waits for this time. Returns whether the user wants to quit.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return true;
            }
            if self.is_to_stop.swap(false, Ordering::Relaxed) {
                self.leave();
                keys::stop_self();
                self.enter();
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let input = io::stdin();
            let mut source = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(left.as_micros().div_ceil(1000));
            if poll(&mut source, timeout.unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0) {
                let mut keys = [0; 64];
                let count = nix::unistd::read(input.as_fd(), &mut keys).unwrap_or(0);
                // At the end of the input, nobody can ask it to quit any more.
                if count == 0 || keys[..count].contains(&b'q') {
                    return true;
                }
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The number of columns.
pub(crate) fn width() -> usize {
    size().0
}

fn size() -> (usize, usize) {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the struct is alive, and is the one that this request writes.
    let known = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) } == 0;
    match (known, usize::from(size.ws_col), usize::from(size.ws_row)) {
        (true, columns @ 1.., rows @ 1..) => (columns, rows),
        _ => (WIDTH, HEIGHT),
    }
}
