//! Charts as inline SVG: lines over an axis, and bars. Colours come from classes, so that the page decides on
//! light and dark; legends are HTML below the chart, so that nothing overlaps at any width.

use penstock_xml::escaped;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;
/// Colours the page defines, `c0` to `c7`.
pub const COLOURS: usize = 8;

/// One line, or the bars of one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Positions and values; for bars, the position is the number of the category.
    pub points: Vec<(f64, f64)>,
    /// Number of its colour.
    pub colour: usize,
    /// Drawn dashed, or as a hollow bar: figures from another source.
    pub foreign: bool,
}

/// A chart of lines or bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// A text alternative of the chart.
    pub title: String,
    /// Name and unit of the vertical axis.
    pub y_label: String,
    /// Name and unit of the horizontal axis.
    pub x_label: String,
    /// Positions and texts along the horizontal axis.
    pub x_ticks: Vec<(f64, String)>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Bars instead of lines.
    pub bars: bool,
    /// Whether a logarithmic vertical axis may be used when values differ much.
    pub may_be_logarithmic: bool,
}

/// The vertical axis.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

/// Values further apart than this are indistinguishable from zero on a linear axis.
const LOGARITHMIC_FROM: f64 = 30.0;

impl Scale {
    fn over(values: &[f64], may_be_logarithmic: bool, headroom: f64) -> Scale {
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let least = positive.clone().fold(f64::INFINITY, f64::min);
        let greatest = positive.fold(0.0, f64::max);
        if greatest == 0.0 {
            return Scale { low: 0.0, high: 1.0, logarithmic: false, ticks: vec![0.0, 1.0] };
        }
        if may_be_logarithmic && greatest / least > LOGARITHMIC_FROM {
            let (low, high) = (least.log10().floor(), greatest.log10().ceil());
            let ticks = (low as i32..=high as i32).map(|power| 10_f64.powi(power)).collect();
            return Scale { low: 10_f64.powf(low), high: 10_f64.powf(high), logarithmic: true, ticks };
        }
        let step = nice_step(greatest / 4.0);
        let count = (greatest * headroom / step).ceil();
        let ticks = (0..=count as u32).map(|number| f64::from(number) * step).collect();
        Scale { low: 0.0, high: count * step, logarithmic: false, ticks }
    }

    /// Where a value is drawn.
    fn y(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low).log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= least * 0.999).unwrap_or(power * 10.0)
}

/// A number as an axis shows it: 1500 as 1.5k, without needless decimals.
pub fn short_number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        huge if huge >= 1e6 => (value / 1e6, "M"),
        large if large >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{scaled:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

impl Chart {
    /// The chart with its legend.
    pub fn html(&self) -> String {
        format!("<figure>{}{}</figure>", self.svg(), self.legend())
    }

    fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let items = self.series.iter().map(|series| {
            let kind = if series.foreign { " foreign" } else { "" };
            format!("<span><i class=\"c{}{kind}\"></i>{}</span>", series.colour % COLOURS, escaped(&series.name))
        });
        format!("<figcaption>{}</figcaption>", items.collect::<String>())
    }

    fn svg(&self) -> String {
        let values: Vec<f64> =
            self.series.iter().flat_map(|series| series.points.iter().map(|(_, value)| *value)).collect();
        // Numbers stand above the bars.
        let headroom = if self.bars { 1.1 } else { 1.0 };
        let scale = Scale::over(&values, self.may_be_logarithmic && !self.bars, headroom);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>",
            escaped(&self.title)
        );
        let note = if scale.logarithmic { ", logarithmic" } else { "" };
        svg.push_str(&format!("<text class=\"label\" x=\"4\" y=\"14\">{}{note}</text>", escaped(&self.y_label)));
        for tick in &scale.ticks {
            let y = scale.y(*tick);
            svg.push_str(&format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" \
text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short_number(*tick),
            ));
        }
        let across = self.across();
        for (position, text) in &self.x_ticks {
            svg.push_str(&format!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                across(*position),
                HEIGHT - BOTTOM + 16.0,
                escaped(text)
            ));
        }
        svg.push_str(&format!(
            "<text class=\"label\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 8.0,
            escaped(&self.x_label)
        ));
        svg.push_str(&if self.bars { self.bars(&scale, &across) } else { self.lines(&scale, &across) });
        svg.push_str("</svg>");
        svg
    }

    /// Maps positions to the width of the drawing.
    fn across(&self) -> impl Fn(f64) -> f64 + use<> {
        let positions = self.series.iter().flat_map(|series| series.points.iter().map(|(x, _)| *x));
        let positions: Vec<f64> = positions.chain(self.x_ticks.iter().map(|(x, _)| *x)).collect();
        let least = positions.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = positions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Bars and the texts below the outermost points need room on both sides.
        let margin = if self.bars { 0.5 } else { 0.04 * (greatest - least).max(1e-9) };
        let (least, greatest) = (least - margin, greatest + margin);
        move |x| LEFT + (x - least) / (greatest - least).max(1e-9) * (WIDTH - LEFT - RIGHT)
    }

    fn lines(&self, scale: &Scale, across: &dyn Fn(f64) -> f64) -> String {
        let mut svg = String::new();
        for series in &self.series {
            let kind = if series.foreign { " foreign" } else { "" };
            let colour = series.colour % COLOURS;
            let path: Vec<String> =
                series.points.iter().map(|(x, value)| format!("{:.1},{:.1}", across(*x), scale.y(*value))).collect();
            svg.push_str(&format!("<polyline class=\"line c{colour}{kind}\" points=\"{}\"/>", path.join(" ")));
            // Many points are a curve; a few are values one may want to read.
            if series.points.len() > 8 {
                continue;
            }
            for (x, value) in &series.points {
                svg.push_str(&format!(
                    "<circle class=\"dot c{colour}{kind}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}: {}</title></circle>",
                    across(*x),
                    scale.y(*value),
                    escaped(&series.name),
                    short_number(*value)
                ));
            }
        }
        svg
    }

    fn bars(&self, scale: &Scale, across: &dyn Fn(f64) -> f64) -> String {
        let mut svg = String::new();
        let count = self.series.len().max(1) as f64;
        let group = (across(1.0) - across(0.0)) * 0.8;
        let width = (group / count).min(44.0);
        for (number, series) in self.series.iter().enumerate() {
            let kind = if series.foreign { " foreign" } else { "" };
            let offset = (number as f64 - count / 2.0) * width;
            for (x, value) in &series.points {
                let (left, top) = (across(*x) + offset, scale.y(*value));
                svg.push_str(&format!(
                    "<rect class=\"bar c{}{kind}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}: {}</title></rect>",
                    series.colour % COLOURS,
                    left + 1.0,
                    (width - 2.0).max(1.0),
                    (HEIGHT - BOTTOM - top).max(0.5),
                    escaped(&series.name),
                    short_number(*value),
                ));
                // A number fits above a bar that is wide enough.
                if width >= 34.0 {
                    svg.push_str(&format!(
                        "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                        left + width / 2.0,
                        top - 4.0,
                        short_number(*value)
                    ));
                }
            }
        }
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_xml::{Document, ParseOptions};

    #[test]
    fn axes_have_round_numbers_that_cover_the_values() {
        for (values, expected) in [
            (vec![30.0, 97.0], vec![0.0, 25.0, 50.0, 75.0, 100.0]),
            (vec![12_345.0], vec![0.0, 5000.0, 10_000.0, 15_000.0]),
            (vec![], vec![0.0, 1.0]),
        ] {
            assert_eq!(Scale::over(&values, true, 1.0).ticks, expected);
        }
        let logarithmic = Scale::over(&[0.5, 400.0], true, 1.0);
        assert_eq!(logarithmic.ticks, [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert!(!Scale::over(&[0.5, 400.0], false, 1.0).logarithmic);
    }

    #[test]
    fn numbers_are_short() {
        for (value, expected) in
            [(0.0, "0"), (0.25, "0.25"), (12.5, "12.5"), (1500.0, "1.5k"), (100_000.0, "100k"), (2e6, "2M")]
        {
            assert_eq!(short_number(value), expected);
        }
    }

    #[test]
    fn a_chart_is_well_formed_and_stays_inside_its_frame() {
        for bars in [false, true] {
            let series = |name: &str, foreign| Series {
                name: name.into(),
                points: vec![(0.0, 10.0), (1.0, 990.0)],
                colour: 0,
                foreign,
            };
            let chart = Chart {
                title: "a < b".into(),
                y_label: "Throughput (requests/s)".into(),
                x_label: "Concurrent users".into(),
                x_ticks: vec![(0.0, "100".into()), (1.0, "1000".into())],
                series: vec![series("500 B", false), series("published & old", true)],
                bars,
                may_be_logarithmic: true,
            };
            let html = chart.html();
            let document = Document::parse(html, &ParseOptions::default()).unwrap();
            for element in document.descendants(Document::ROOT).filter(|node| document.is_element(*node)) {
                for attribute in document.attributes(element) {
                    let number: f64 = document.string_value(attribute).parse().unwrap_or(0.0);
                    match document.local_name(attribute) {
                        "x" | "cx" | "x1" | "x2" => assert!((0.0..=WIDTH).contains(&number), "{number}"),
                        "y" | "cy" | "y1" | "y2" => assert!((0.0..=HEIGHT).contains(&number), "{number}"),
                        _ => {}
                    }
                }
            }
        }
    }
}
