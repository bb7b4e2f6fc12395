//! The figures of the published reports, to lay beside one's own.
use crate::csv::CsvReader;
use crate::results::Cell;

/// Published figures of one combination. Not every report gives every figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishedRow {
    /// The combination.
    pub cell: Option<Cell>,
    /// Requests per second.
    pub throughput: Option<f64>,
    /// Average response time in milliseconds.
    pub average_ms: Option<f64>,
    /// 99th percentile of the response time in milliseconds.
    pub p99_ms: Option<f64>,
}

/// One published report.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The product it is about.
    pub product: String,
    rows: Vec<PublishedRow>,
}

const REPORTS: [(&str, &str); 4] = [
    ("mi-4.5.0", include_str!("../../../../bench/published/mi-4.5.0.csv")),
    ("ei-6.6.0", include_str!("../../../../bench/published/ei-6.6.0.csv")),
    ("apim", include_str!("../../../../bench/published/apim.csv")),
    ("choreo-connect", include_str!("../../../../bench/published/choreo-connect.csv")),
];

/// What must be said wherever published figures stand beside one's own.
pub const CAVEAT: &str = "The published figures were made on other machines, with load generator, gateway and back-end on a \
machine each. Here all three may share one. A ratio includes the difference of the machines.";

impl Published {
    /// The report with this name.
    pub fn find(name: &str) -> Option<Published> {
        let (_, text) = REPORTS.iter().find(|(other, _)| *other == name)?;
        let (product, records) = text.split_once('\n')?;
        let mut reader = CsvReader::new(records.as_bytes());
        let (mut fields, mut rows) = (Vec::new(), Vec::new());
        while let Ok(true) = reader.next(&mut fields) {
            rows.extend(parse(&fields));
        }
        Some(Published { product: product.trim_start_matches("# ").to_owned(), rows })
    }

    /// Names of all reports.
    pub fn names() -> impl Iterator<Item = &'static str> {
        REPORTS.iter().map(|(name, _)| *name)
    }

    /// The figures of a combination, if it was published.
    pub fn row(&self, cell: &Cell) -> Option<&PublishedRow> {
        self.rows.iter().find(|row| row.cell.as_ref() == Some(cell))
    }
}

fn parse(fields: &[String]) -> Option<PublishedRow> {
    let [scenario, users, bytes, delay, throughput, average, _deviation, _p90, _p95, p99] = fields else { return None };
    let number = |text: &String| text.parse::<f64>().ok();
    Some(PublishedRow {
        cell: Some(Cell {
            scenario: scenario.clone(),
            users: users.parse().ok()?,
            message_bytes: bytes.parse().ok()?,
            backend_delay_ms: delay.parse().ok()?,
        }),
        throughput: number(throughput),
        average_ms: number(average),
        p99_ms: number(p99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_read_whole() {
        for (name, rows) in [("mi-4.5.0", 64), ("ei-6.6.0", 4), ("apim", 144), ("choreo-connect", 2)] {
            let published = Published::find(name).unwrap();
            assert_eq!(published.rows.len(), rows, "{name}");
            assert!(published.rows.iter().all(|row| row.throughput.is_some() && row.p99_ms.is_some()));
        }
        let cell = Cell { scenario: "CBR Proxy".into(), users: 100, message_bytes: 500, backend_delay_ms: 0 };
        let published = Published::find("mi-4.5.0").unwrap();
        assert_eq!(published.row(&cell).unwrap().throughput, Some(5032.02));
        assert_eq!(published.product, "WSO2 Micro Integrator 4.5.0, 2 GB heap");
    }
}
