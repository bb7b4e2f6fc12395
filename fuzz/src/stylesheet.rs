//! Stylesheets: compiling and running any bytes ends with a result or an error.

use std::sync::Arc;
use std::time::Duration;

use penstock_xml::{Document, ParseOptions};
use penstock_xslt::{CompileOptions, Limits, Stylesheet, TransformOptions};

/// Pieces of stylesheets.
pub const DICTIONARY: &[&str] = &[
    "<xsl:template match=\"",
    "<xsl:template name=\"t\">",
    "</xsl:template>",
    "<xsl:apply-templates select=\"",
    "<xsl:call-template name=\"t\"/>",
    "<xsl:for-each select=\"",
    "</xsl:for-each>",
    "<xsl:value-of select=\"",
    "<xsl:copy>",
    "</xsl:copy>",
    "<xsl:copy-of select=\"$v\"/>",
    "<xsl:variable name=\"v\">",
    "</xsl:variable>",
    "<xsl:attribute name=\"a:b\" namespace=\"urn:n\">",
    "<xsl:element name=\"{.}\">",
    "<xsl:choose><xsl:when test=\"",
    "<xsl:number level=\"any\" format=\"A.1\"/>",
    "<xsl:sort select=\"@n\"/>",
    "<xsl:key name=\"k\" match=\"*\" use=\"@n\"/>",
    "<xsl:for-each-group select=\"*\" group-by=\"@n\">",
    "<xsl:function name=\"f:f\">",
    "<xsl:next-match/>",
    "<xsl:apply-imports/>",
    "<xsl:strip-space elements=\"*\"/>",
    "<xsl:output method=\"html\" indent=\"yes\"/>",
    "version=\"2.0\"",
    "mode=\"#all\"",
    "{}",
    "\"/>",
];

const SOURCE: &str =
    "<doc a=\"1\"><item n=\"1\">one<b/></item><!--c--><?p d?><item n=\"2\">two</item>\n<p:x xmlns:p=\"urn:p\"/></doc>";

/// Little enough that an input which never ends is over at once.
const LIMITS: Limits = Limits {
    depth_max: 1_000,
    function_depth_max: 20,
    output_bytes_max: 1 << 20,
    fuel: 200_000,
    time_max: Some(Duration::from_secs(1)),
};

/// Compiles the bytes as a stylesheet; what compiles is run, to bytes and to a tree.
pub fn stylesheet(data: &[u8]) {
    let Ok((stylesheet, _)) = Stylesheet::compile(data.to_vec(), &CompileOptions::default()) else { return };
    let options = ParseOptions { strip_space: stylesheet.strip_space(), ..ParseOptions::default() };
    let Ok(document) = Document::parse(SOURCE, &options) else { return };
    let document = Arc::new(document);
    let options = TransformOptions { limits: LIMITS, ..TransformOptions::default() };
    let mut out = Vec::new();
    let bytes = stylesheet.transform(&document, Document::ROOT, &options, &mut out);
    assert!(bytes.is_ok() || out.is_empty(), "a failure leaves no output");
    let item = document.descendants(Document::ROOT).nth(1).unwrap_or(Document::ROOT);
    let _ = stylesheet.transform_to_tree(&document, item, &options);
}
