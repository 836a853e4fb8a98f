//! A task that takes and releases locks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rslock::LockManager;

use crate::figures::Board;

const TTL: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(1);

pub struct Worker {
    manager: LockManager,
    board: Arc<Board>,
    resource: String,
    contended: bool,
    number: usize,
    pub locks: Vec<Duration>,
    pub unlocks: Vec<Duration>,
    pub cycles: usize,
    pub failed: usize,
    pub held: Duration,
}

impl Worker {
    pub fn new(
        manager: &LockManager,
        board: &Arc<Board>,
        key: &str,
        contended: bool,
        number: usize,
    ) -> Self {
        Self {
            manager: manager.clone(),
            board: Arc::clone(board),
            resource: format!("{key}:{}", if contended { 0 } else { number }),
            contended,
            number,
            locks: Vec::new(),
            unlocks: Vec::new(),
            cycles: 0,
            failed: 0,
            held: Duration::ZERO,
        }
    }

    pub fn clear(&mut self) {
        self.locks.clear();
        self.unlocks.clear();
        self.cycles = 0;
        self.failed = 0;
        self.held = Duration::ZERO;
    }

    pub async fn run_until(mut self, end: Instant) -> Self {
        while Instant::now() < end {
            if self.contended {
                self.contend(end).await;
            } else {
                self.cycle().await;
            }
        }
        self
    }

    async fn cycle(&mut self) {
        let start = Instant::now();
        let lock = self.manager.lock(self.resource.as_str(), TTL).await;
        let locked = Instant::now();
        self.locks.push(locked - start);
        self.cycles += 1;
        match lock {
            Ok(lock) => {
                self.manager.unlock(&lock).await;
                self.unlocks.push(locked.elapsed());
            }
            Err(_) => self.failed += 1,
        }
    }

    async fn contend(&mut self, end: Instant) {
        let start = Instant::now();
        let lock = self.manager.acquire_no_guard(self.resource.as_str(), TTL).await;
        let locked = Instant::now();
        self.locks.push(locked - start);
        let Ok(lock) = lock else {
            self.failed += 1;
            return;
        };
        if locked < end {
            self.board.enter(self.number);
            tokio::time::sleep(HOLD).await;
            self.cycles += 1;
            self.board.leave();
            self.held += locked.elapsed();
        }
        let released = Instant::now();
        self.manager.unlock(&lock).await;
        self.unlocks.push(released.elapsed());
    }
}
