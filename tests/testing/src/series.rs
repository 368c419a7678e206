//! The series that dashboards and alerts ask for.

/// The names of a server's series in a query of Prometheus.
pub fn series_in(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("parlor_") || word.starts_with("process_"))
}
