//! `$metadata`: the entity data model of the tables (OData 4.0, CSDL XML).

use super::catalog::Table;
use crate::fault::escaped;

const NAMESPACE: &str = "Tables";

fn attribute(text: &str) -> String {
    escaped(text).replace('"', "&quot;")
}

/// Whether clients can name the rows of a table.
fn has_key(table: &Table) -> bool {
    !table.key().is_empty()
}

/// The document.
pub fn document(tables: &[Table]) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><edmx:Edmx Version=\"4.0\" \
         xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\"><edmx:DataServices>\
         <Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"{NAMESPACE}\">"
    );
    for table in tables {
        out.push_str(&format!("<EntityType Name=\"{}\">", attribute(&table.name)));
        if has_key(table) {
            out.push_str("<Key>");
            for column in table.key() {
                out.push_str(&format!("<PropertyRef Name=\"{}\"/>", attribute(&column.name)));
            }
            out.push_str("</Key>");
        }
        for column in &table.columns {
            let nullable = if column.is_nullable { "" } else { " Nullable=\"false\"" };
            let name = attribute(&column.name);
            out.push_str(&format!("<Property Name=\"{name}\" Type=\"{}\"{nullable}/>", column.edm_type()));
        }
        for link in &table.links {
            let (name, target) = (attribute(&link.name), attribute(&link.target));
            let kind = match link.is_collection {
                true => format!("Collection({NAMESPACE}.{target})"),
                false => format!("{NAMESPACE}.{target}"),
            };
            out.push_str(&format!("<NavigationProperty Name=\"{name}\" Type=\"{kind}\"/>"));
        }
        out.push_str("</EntityType>");
    }
    out.push_str("<EntityContainer Name=\"Container\">");
    for table in tables {
        let name = attribute(&table.name);
        out.push_str(&format!("<EntitySet Name=\"{name}\" EntityType=\"{NAMESPACE}.{name}\""));
        let binding = |link: &super::links::Link| {
            let (path, target) = (attribute(&link.name), attribute(&link.target));
            format!("<NavigationPropertyBinding Path=\"{path}\" Target=\"{target}\"/>")
        };
        match table.links.is_empty() {
            true => out.push_str("/>"),
            false => out.push_str(&format!(">{}</EntitySet>", table.links.iter().map(binding).collect::<String>())),
        }
    }
    out.push_str("</EntityContainer></Schema></edmx:DataServices></edmx:Edmx>");
    out
}
