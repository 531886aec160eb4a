//! Draws a figure as a chart.

use crate::bench::{self, Spread};
use crate::chart::{self, Axis, Chart, Panel};

use super::{Abscissa, Curve, Figure, Measured};

/// Median times, in one panel or, with the online times, in two.
pub fn chart(figure: &Figure, measured: &Measured) -> Chart {
    let total = |title| panel(title, &measured.curves, |point| point.total_ms_per_block);
    let online = |title| panel(title, &measured.curves, |point| point.online_ms_per_block);
    // Rates and times span several powers of ten.
    let logarithmic = matches!(figure.abscissa, Abscissa::Rate);
    Chart {
        title: format!("{}: {} ({})", figure.name, figure.caption, figure.protocol),
        x: Axis { title: measured.x, logarithmic },
        y: Axis { title: "ms a block (median)", logarithmic },
        panels: match figure.draws_online {
            true => vec![total("total"), online("online")],
            false => vec![total("")],
        },
    }
}

fn panel(title: &'static str, curves: &[Curve], time: fn(&bench::Point) -> Spread) -> Panel {
    let points = |curve: &Curve| curve.points.iter().map(|p| (p.x, time(&p.measured).median)).collect();
    let line = |curve: &Curve| chart::Curve { name: curve.inversion.name(), points: points(curve) };
    Panel { title, curves: curves.iter().map(line).collect() }
}
