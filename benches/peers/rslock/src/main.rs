//! Measures rslock in the same way as the bench's own programs measure their contenders.
//!
//! `rslock-peer cycles|contend WORKERS KEY WARM_MS RUN_MS PORT...`
//!
//! The exchange with the bench: the program prints "ready" after the warm-up, and any line from the bench starts
//! the measurement. It prints "running" when that starts, and the figures as key=value at its end. Workers are
//! tasks.

mod figures;
mod worker;

use std::env;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rslock::LockManager;

use figures::{Board, processor_time};
use worker::Worker;

struct Plan {
    contended: bool,
    workers: usize,
    key: String,
    warm: Duration,
    run: Duration,
    urls: Vec<String>,
}

impl Plan {
    fn from_args() -> Option<Self> {
        let mut args = env::args().skip(1);
        let mut next = || args.next();
        let contended = next()? == "contend";
        let workers = next()?.parse().ok()?;
        let key = next()?;
        let mut duration = || Some(Duration::from_millis(next()?.parse().ok()?));
        let (warm, run) = (duration()?, duration()?);
        let urls = args.map(|port| format!("redis://127.0.0.1:{port}/")).collect();
        Some(Self { contended, workers, key, warm, run, urls })
    }
}

fn main() -> io::Result<()> {
    let Some(plan) = Plan::from_args() else {
        eprintln!("rslock-peer cycles|contend WORKERS KEY WARM_MS RUN_MS PORT...");
        return Ok(());
    };
    // A single caller is fastest on its own thread.
    let runtime = match plan.workers {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
    };
    runtime.block_on(measure(plan))
}

async fn measure(plan: Plan) -> io::Result<()> {
    let manager = LockManager::new(plan.urls.clone());
    let board = Arc::new(Board::default());
    let new_worker = |number| Worker::new(&manager, &board, &plan.key, plan.contended, number);
    let workers: Vec<Worker> = (0..plan.workers).map(new_worker).collect();

    let mut workers = run_all(workers, plan.warm).await;
    println!("ready");
    if io::stdin().read_line(&mut String::new())? == 0 {
        return Ok(());
    }
    println!("running");
    workers.iter_mut().for_each(Worker::clear);
    board.clear();
    let (start, busy) = (Instant::now(), processor_time());
    let workers = run_all(workers, plan.run).await;
    let busy = processor_time() - busy;
    let took = if plan.contended { plan.run } else { start.elapsed() };
    println!("{}", figures::line(&workers, plan.contended.then_some(&*board), took, busy));
    Ok(())
}

/// A single worker runs in the main task. Another task would cost it a wake-up.
async fn run_all(workers: Vec<Worker>, time: Duration) -> Vec<Worker> {
    let end = Instant::now() + time;
    if workers.len() == 1 {
        let mut done = Vec::new();
        for worker in workers {
            done.push(worker.run_until(end).await);
        }
        return done;
    }
    let tasks: Vec<_> = workers.into_iter().map(|w| tokio::spawn(w.run_until(end))).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.expect("a worker does not panic"));
    }
    done
}
