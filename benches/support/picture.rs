//! A picture of how long locks took. The horizontal axis is the share of locks, and the vertical axis the time.
//! Both scales show the slowest locks as well as the majority.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::contenders::Who;
use super::plan::healthy;
use super::results::Results;
use super::turns::{Load, Turn};

const PERCENTS: [f64; 22] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 93.0, 95.0, 97.0,
    98.0, 99.0, 99.5, 99.7, 99.9, 99.95,
];

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
const NAMES: f64 = 120.0;

/// The vertical scale, in microseconds.
const LEAST: f64 = 20.0;
const MOST: f64 = 100_000.0;

/// A contender's colour. Readers who see few colours can also tell these apart.
fn colour(who: Who) -> &'static str {
    match who {
        Who::Ours => "#d55e00",
        Who::Floor => "#000000",
        Who::Same => "#666666",
        Who::Serial | Who::Polling => "#0072b2",
        Who::Rslock => "#009e73",
        Who::NodeRedlock => "#cc79a7",
        Who::RedisPy => "#999999",
        Who::RedlockPy => "#e69f00",
        Who::Pottery => "#56b4e9",
    }
}

/// One curve for each contender: for each percentage, the time within which that share of the locks was taken.
struct Curve {
    who: Who,
    points: Vec<(f64, f64)>,
}

pub(crate) fn draw(results: &Results) -> String {
    let panels = [
        ("1 thread, 5 servers", healthy(Who::Ours, 5, Load::Own(1))),
        ("8 threads, 8 resources, 5 servers", healthy(Who::Ours, 5, Load::Own(8))),
    ];
    let names = WIDTH * panels.len() as f64;
    let width = names + NAMES;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" \
         width=\"{width}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>How long taking a lock takes</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut named = BTreeSet::new();
    for (number, (title, turn)) in panels.into_iter().enumerate() {
        let shift = WIDTH * number as f64;
        let curves = curves(results, turn);
        let _ = writeln!(svg, "<g transform=\"translate({shift} 0)\">");
        panel(&mut svg, title, &curves);
        svg.push_str("</g>\n");
        named.extend(curves.iter().map(|curve| curve.who));
    }
    legend(&mut svg, names, &named);
    svg.push_str("</svg>\n");
    svg
}

fn curves(results: &Results, turn: Turn) -> Vec<Curve> {
    let of = |who: Who| {
        let rounds = results.records(turn.by(who)).len();
        let point = |percent: &f64| {
            let spread = results.spread(turn.by(who), &format!("lock_p{percent}_us"))?;
            Some((*percent, spread.median))
        };
        let points: Vec<_> = PERCENTS.iter().filter_map(point).collect();
        (rounds > 0 && !points.is_empty()).then_some(Curve { who, points })
    };
    Who::ALL.into_iter().filter_map(of).collect()
}

fn panel(svg: &mut String, title: &str, curves: &[Curve]) {
    text(svg, (LEFT, 24.0), "start", &format!("font-size=\"15\" {BOLD}"), title);
    grid(svg);
    // The library's curve is drawn last, so it is on top.
    for curve in curves.iter().rev() {
        let points: Vec<String> =
            curve.points.iter().map(|p| format!("{:.1},{:.1}", across(p.0), up(p.1))).collect();
        let width = if curve.who == Who::Ours { 3.0 } else { 1.6 };
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" points=\"{}\"/>",
            colour(curve.who),
            points.join(" ")
        );
    }
}

const BOLD: &str = "font-weight=\"bold\"";

fn grid(svg: &mut String) {
    for percent in [0.0, 50.0, 90.0, 99.0, 99.9] {
        let x = across(percent);
        line(svg, (x, TOP), (x, HEIGHT - BOTTOM));
        text(svg, (x, HEIGHT - BOTTOM + 18.0), "middle", "", &format!("{percent} %"));
    }
    for us in [20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5] {
        let y = up(us);
        line(svg, (LEFT, y), (WIDTH - RIGHT, y));
        let label = if us < 1e3 { format!("{us} µs") } else { format!("{} ms", us / 1e3) };
        text(svg, (LEFT - 6.0, y + 4.0), "end", "", &label);
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let label = "so many of the locks were had within …";
    text(svg, (middle, HEIGHT - BOTTOM + 38.0), "middle", "", label);
}

/// The colours of the contenders, to the right of both charts.
fn legend(svg: &mut String, x: f64, named: &BTreeSet<Who>) {
    for (number, who) in named.iter().enumerate() {
        let y = TOP + 8.0 + 20.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"18\" height=\"4\" fill=\"{}\"/>",
            y - 6.0,
            colour(*who)
        );
        text(svg, (x + 26.0, y), "start", "", who.name());
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, more: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"#333333\" {more}>{words}</text>",
        at.0, at.1
    );
}

/// Each step is ten times nearer to 100 %: 90 %, 99 %, 99.9 %.
fn across(percent: f64) -> f64 {
    let nines = -(1.0 - percent / 100.0).log10();
    LEFT + (WIDTH - LEFT - RIGHT) * nines / 3.35
}

fn up(us: f64) -> f64 {
    let share = (us.clamp(LEAST, MOST) / LEAST).log10() / (MOST / LEAST).log10();
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
}
