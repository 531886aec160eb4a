//! A line chart as SVG: curves over one abscissa in one or several panels, a legend beside them, and the data
//! in a separate file.

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::say;

/// A chart to draw.
pub struct Chart {
    /// The heading.
    pub title: String,
    /// The abscissa, the same in all panels.
    pub x: Axis,
    /// The ordinate, the same in all panels.
    pub y: Axis,
    /// Panels side by side; curves at the same index have the same colour in all of them.
    pub panels: Vec<Panel>,
}

/// An axis. Its range is that of the data. A linear ordinate begins at 0.
pub struct Axis {
    /// The quantity and its unit.
    pub title: &'static str,
    /// Whether the scale is logarithmic.
    pub logarithmic: bool,
}

/// Curves in one frame.
pub struct Panel {
    /// The heading of the panel; empty if there is only one.
    pub title: &'static str,
    /// The curves. The first panel's legend explains their names.
    pub curves: Vec<Curve>,
}

/// A curve.
pub struct Curve {
    /// The name in the legend.
    pub name: &'static str,
    /// Abscissa and ordinate, from left to right.
    pub points: Vec<(f64, f64)>,
}

const PANEL: (u32, u32) = (700, 560);
const LEGEND_WIDTH: u32 = 230;
const LEGEND_TOP: i32 = 60;
const LEGEND_LINE: i32 = 22;
const MAX_MARKS: usize = 10;
/// Grid lines between two labels.
const LIGHT_LINES: usize = 4;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// The path of a picture's data file. An error before the measurement if one of the two files cannot be
/// written.
pub fn data_beside(path: &Path) -> Result<PathBuf> {
    ensure!(path.extension().is_some_and(|e| e == "svg"), "a plot takes a file name that ends in .svg");
    let beside = path.with_extension("json");
    for file in [path, &beside] {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
        opened.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(beside)
}

impl Chart {
    /// Writes the picture, and the data beside it.
    pub fn save(&self, data: &impl serde::Serialize, path: &Path) -> Result<()> {
        let beside = data_beside(path)?;
        let text = serde_json::to_string_pretty(data)?;
        std::fs::write(&beside, format!("{text}\n"))
            .with_context(|| format!("cannot write {}", beside.display()))?;
        std::fs::write(path, self.svg()?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The same, and then prints the data as JSON, or where the files are.
    pub fn save_and_tell(&self, data: &impl serde::Serialize, path: &Path, json: bool) -> Result<()> {
        self.save(data, path)?;
        if json {
            say!("{}", serde_json::to_string_pretty(data)?);
        } else {
            say!("wrote {} and {}", path.display(), path.with_extension("json").display());
        }
        Ok(())
    }

    /// The picture.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|e| anyhow!("cannot draw: {e}"))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Drawn {
        let width = PANEL.0 * self.panels.len() as u32;
        let root = SVGBackend::with_string(svg, (width + LEGEND_WIDTH, PANEL.1)).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(&self.title, (FONT, 20))?;
        let (charts, legend) = root.split_horizontally(width as i32);
        let areas = charts.split_evenly((1, self.panels.len()));
        for (area, panel) in areas.iter().zip(&self.panels) {
            let (x, mut y) =
                (self.x.range(self.points().map(|p| p.0)), self.y.range(self.points().map(|p| p.1)));
            y.start = if self.y.logarithmic { y.start } else { 0.0 };
            match (self.x.logarithmic, self.y.logarithmic) {
                (true, true) => self.panel(area, panel, x.log_scale(), y.log_scale())?,
                (true, false) => self.panel(area, panel, x.log_scale(), y)?,
                (false, true) => self.panel(area, panel, x, y.log_scale())?,
                (false, false) => self.panel(area, panel, x, y)?,
            }
        }
        self.legend(&legend)?;
        root.present()?;
        Ok(())
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        curves.flat_map(|curve| curve.points.iter().copied())
    }

    fn panel<X, Y>(&self, area: &Area<'_>, panel: &Panel, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut builder = ChartBuilder::on(area);
        builder.margin(15).x_label_area_size(45).y_label_area_size(70);
        if !panel.title.is_empty() {
            builder.caption(panel.title, (FONT, 16));
        }
        let mut chart = builder.build_cartesian_2d(x, y)?;
        let shown = |value: &f64| shown(*value);
        // A mark for every point, if there are few.
        let marks = panel.curves.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
        chart
            .configure_mesh()
            .max_light_lines(LIGHT_LINES)
            .x_labels(if self.x.logarithmic { MAX_MARKS } else { marks.min(MAX_MARKS) })
            .x_desc(self.x.title)
            .y_desc(self.y.title)
            .x_label_formatter(&shown)
            .y_label_formatter(&shown)
            .draw()?;
        for (i, curve) in panel.curves.iter().enumerate() {
            let style = colour(i, panel.curves.len()).stroke_width(2);
            chart.draw_series(LineSeries::new(curve.points.iter().copied(), style).point_size(3))?;
        }
        Ok(())
    }

    /// Names in the order in which the first panel's curves end, from top to bottom.
    fn legend(&self, area: &Area<'_>) -> Drawn {
        let Some(panel) = self.panels.first() else { return Ok(()) };
        let mut curves: Vec<(usize, &Curve)> = panel.curves.iter().enumerate().collect();
        let end = |curve: &Curve| curve.points.last().map_or(0.0, |p| p.1);
        curves.sort_by(|a, b| end(b.1).total_cmp(&end(a.1)));
        for (line, (i, curve)) in curves.into_iter().enumerate() {
            let y = LEGEND_TOP + LEGEND_LINE * line as i32;
            let style = colour(i, panel.curves.len()).stroke_width(3);
            area.draw(&PathElement::new([(0, y), (24, y)], style))?;
            area.draw(&Text::new(curve.name, (32, y - 7), (FONT, 14)))?;
        }
        Ok(())
    }
}

impl Axis {
    fn range(&self, values: impl Iterator<Item = f64>) -> Range<f64> {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
        let edge = 0.04 * (most - least);
        if self.logarithmic { least * 0.8..most * 1.25 } else { least - edge..most + edge }
    }
}

fn colour(i: usize, of: usize) -> HSLColor {
    // Every other colour is darker, because neighbours among ten hues differ little.
    HSLColor(i as f64 / of as f64, 0.9, if i.is_multiple_of(2) { 0.45 } else { 0.3 })
}

/// Formats a number with as many decimal places as it needs.
fn shown(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(logarithmic: bool, panels: usize) -> Chart {
        let curve = |name, factor: f64| Curve { name, points: vec![(1.0, factor), (100.0, 50.0 * factor)] };
        let panel = || Panel { title: "panel", curves: vec![curve("lower", 1.0), curve("upper", 2.0)] };
        let axis = |title| Axis { title, logarithmic };
        let panels = (0..panels).map(|_| panel()).collect();
        Chart { title: "all".into(), x: axis("abscissa"), y: axis("ordinate"), panels }
    }

    #[test]
    fn a_picture_has_its_titles_once_a_panel_and_one_legend() {
        for (logarithmic, panels) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
            let svg = chart(logarithmic, panels).svg().expect("drawn");
            let count = |text: &str| svg.matches(&format!("\n{text}\n")).count();
            assert_eq!(["all", "lower", "upper"].map(count), [1; 3], "{svg}");
            assert_eq!(["panel", "abscissa", "ordinate"].map(count), [panels; 3], "{svg}");
            assert!(svg.find("upper") < svg.find("lower"), "as they end, from top to bottom");
        }
    }

    #[test]
    fn numbers_at_an_axis_have_no_places_that_say_nothing() {
        assert_eq!([0.0, 0.30000000000000004, 2.5, 1000.0].map(shown), ["0", "0.3", "2.5", "1000"]);
    }
}
