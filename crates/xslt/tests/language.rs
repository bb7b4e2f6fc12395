//! The language, one row each: what it is about, the top-level elements, and the result for [`SOURCE`].

mod common;

use common::transform;

const SOURCE: &str = r#"<doc a="1" b="2"><item n="3" id="x">three<sub>s1</sub></item><!--c1--><?pi data?><item n="1" id="y">one</item><para>mixed <b>bold</b> text</para><e/><deep><item n="9">nine</item></deep></doc>"#;

fn check(version: &str, rows: &[(&str, &str, &str)]) {
    for (about, body, expected) in rows {
        assert_eq!(transform(version, body, SOURCE), *expected, "{about}");
    }
}

#[test]
fn output_of_version_one() {
    check(
        "1.0",
        &[
            (
                "copy1",
                r#"<xsl:template match="/"><out><xsl:copy-of select="doc/item"/><xsl:copy-of select="doc/@*"/></out></xsl:template>"#,
                r#"<out><item n="3" id="x">three<sub>s1</sub></item><item n="1" id="y">one</item></out>"#,
            ),
            (
                "copy2",
                r#"<xsl:template match="@*|node()"><xsl:copy><xsl:apply-templates select="@*|node()"/></xsl:copy></xsl:template><xsl:template match="sub"/><xsl:template match="@n"><xsl:attribute name="nn"><xsl:value-of select=". * 2"/></xsl:attribute></xsl:template>"#,
                r#"<doc a="1" b="2"><item nn="6" id="x">three</item><!--c1--><?pi data?><item nn="2" id="y">one</item><para>mixed <b>bold</b> text</para><e/><deep><item nn="18">nine</item></deep></doc>"#,
            ),
            (
                "rtf",
                r#"<xsl:template match="/"><xsl:variable name="v"><a><b x="1">t</b></a><a>u</a></xsl:variable><out><xsl:value-of select="$v"/>|<xsl:copy-of select="$v"/>|<xsl:value-of select="count(e:node-set($v)/a)"/>|<xsl:for-each select="e:node-set($v)//b"><xsl:value-of select="name()"/></xsl:for-each></out></xsl:template>"#,
                r#"<out>tu|<a><b x="1">t</b></a><a>u</a>|2|b</out>"#,
            ),
            (
                "attrs",
                r#"<xsl:attribute-set name="s" use-attribute-sets="t"><xsl:attribute name="x">1</xsl:attribute></xsl:attribute-set><xsl:attribute-set name="t"><xsl:attribute name="x">0</xsl:attribute><xsl:attribute name="y">2</xsl:attribute></xsl:attribute-set><xsl:template match="/"><out xsl:use-attribute-sets="s" z="{doc/@a}{{}}"><xsl:attribute name="y">over</xsl:attribute><xsl:element name="q:r" namespace="urn:q" use-attribute-sets="t"><xsl:attribute name="q:at" namespace="urn:q">v</xsl:attribute><xsl:attribute name="z:at" namespace="urn:z">v</xsl:attribute></xsl:element></out></xsl:template>"#,
                r#"<out x="1" z="1{}" y="over"><q:r xmlns:q="urn:q" x="0" y="2" q:at="v" xmlns:z="urn:z" z:at="v"/></out>"#,
            ),
            (
                "ws",
                r#"<xsl:strip-space elements="*"/><xsl:preserve-space elements="para"/><xsl:template match="/"><out><xsl:copy-of select="."/></out></xsl:template>"#,
                r#"<out><doc a="1" b="2"><item n="3" id="x">three<sub>s1</sub></item><!--c1--><?pi data?><item n="1" id="y">one</item><para>mixed <b>bold</b> text</para><e/><deep><item n="9">nine</item></deep></doc></out>"#,
            ),
            (
                "doe",
                r#"<xsl:template match="/"><out><xsl:value-of select="'&lt;b&gt;'" disable-output-escaping="yes"/><xsl:text disable-output-escaping="yes">&lt;/b&gt;</xsl:text></out></xsl:template>"#,
                r#"<out><b></b></out>"#,
            ),
            (
                "nsout",
                r#"<xsl:template match="/"><a xmlns="urn:d"><b xmlns=""><c/></b><xsl:for-each select="doc/item[1]"><xsl:copy-of select="."/></xsl:for-each><d xmlns:z="urn:z"><z:e z:f="1"/></d></a></xsl:template>"#,
                r#"<a xmlns="urn:d"><b xmlns=""><c/></b><item xmlns="" n="3" id="x">three<sub>s1</sub></item><d xmlns:z="urn:z"><z:e z:f="1"/></d></a>"#,
            ),
            (
                "nsdef",
                r#"<xsl:template match="@*|node()"><xsl:copy><xsl:apply-templates select="@*|node()"/></xsl:copy></xsl:template><xsl:template match="e"><f xmlns="urn:f"><g xmlns=""/></f><h><i/></h></xsl:template>"#,
                r#"<doc a="1" b="2"><item n="3" id="x">three<sub>s1</sub></item><!--c1--><?pi data?><item n="1" id="y">one</item><para>mixed <b>bold</b> text</para><f xmlns="urn:f"><g xmlns=""/></f><h><i/></h><deep><item n="9">nine</item></deep></doc>"#,
            ),
            (
                "pi",
                r#"<xsl:template match="/"><xsl:processing-instruction name="x">y</xsl:processing-instruction><xsl:comment>a--b-</xsl:comment><out><xsl:apply-templates select="//comment()|//processing-instruction()"/></out></xsl:template><xsl:template match="comment()">C<xsl:value-of select="."/></xsl:template><xsl:template match="processing-instruction('pi')">P<xsl:value-of select="."/></xsl:template>"#,
                r#"<?x y?><!--a- -b- --><out>Cc1Pdata</out>"#,
            ),
            (
                "avtq",
                r#"<xsl:template match="/"><out a="{concat('}',&quot;{&quot;)}" b="{doc/@a}-{doc/@b}"/></xsl:template>"#,
                r#"<out a="}{" b="1-2"/>"#,
            ),
        ],
    );
}

#[test]
fn templates_and_variables_of_version_one() {
    check(
        "1.0",
        &[
            (
                "mode",
                r#"<xsl:template match="/"><out><xsl:apply-templates select="//item" mode="m"/>;<xsl:apply-templates select="//item"/></out></xsl:template><xsl:template match="item" mode="m">[<xsl:value-of select="@n"/>]</xsl:template><xsl:template match="item[@n=1]" mode="m" priority="2">(<xsl:apply-templates mode="m"/>)</xsl:template>"#,
                r#"<out>[3](one)[9];threes1onenine</out>"#,
            ),
            (
                "params",
                r#"<xsl:param name="g" select="5"/><xsl:template name="f"><xsl:param name="n" select="$g"/><xsl:param name="acc" select="1"/><xsl:choose><xsl:when test="$n &gt; 1"><xsl:call-template name="f"><xsl:with-param name="n" select="$n - 1"/><xsl:with-param name="acc" select="$acc * $n"/></xsl:call-template></xsl:when><xsl:otherwise><xsl:value-of select="$acc"/></xsl:otherwise></xsl:choose></xsl:template><xsl:template match="/"><out><xsl:call-template name="f"/></out></xsl:template>"#,
                r#"<out>120</out>"#,
            ),
            (
                "match",
                r#"<xsl:template match="/"><out><xsl:apply-templates select="//*"/></out></xsl:template><xsl:template match="*">.</xsl:template><xsl:template match="doc/item[2]">2</xsl:template><xsl:template match="doc//item" priority="0.6">d</xsl:template><xsl:template match="item[last()]">L</xsl:template><xsl:template match="p:*" xmlns:p="urn:p">p</xsl:template><xsl:template match="para/b | e">U</xsl:template>"#,
                r#"<out>.d.d.UU.d</out>"#,
            ),
            (
                "vars",
                r#"<xsl:variable name="a" select="$b + 1"/><xsl:variable name="b" select="count(//item)"/><xsl:template match="/"><out><xsl:value-of select="$a"/><xsl:for-each select="doc/item"><xsl:variable name="v" select="position()"/><xsl:if test="$v = 2"><xsl:variable name="v2"><q><xsl:value-of select="$v"/></q></xsl:variable><xsl:copy-of select="$v2"/></xsl:if></xsl:for-each></out></xsl:template>"#,
                r#"<out>4<q>2</q></out>"#,
            ),
            (
                "emptyvar",
                r#"<xsl:template match="/"><xsl:variable name="v"/><out><xsl:value-of select="$v=''"/><xsl:value-of select="boolean($v)"/></out></xsl:template>"#,
                r#"<out>truefalse</out>"#,
            ),
            (
                "current",
                r#"<xsl:template match="/"><out><xsl:for-each select="doc/item"><xsl:value-of select="count(//item[@n &gt; current()/@n])"/>;</xsl:for-each></out></xsl:template>"#,
                r#"<out>1;2;</out>"#,
            ),
            (
                "apnum",
                r#"<xsl:template match="/"><out><xsl:apply-templates/></out></xsl:template><xsl:template match="item"><xsl:value-of select="position()"/>of<xsl:value-of select="last()"/></xsl:template>"#,
                r#"<out>1of74of7mixed bold text1of1</out>"#,
            ),
        ],
    );
}

#[test]
fn selection_and_numbers_of_version_one() {
    check(
        "1.0",
        &[
            (
                "num",
                r#"<xsl:template match="/"><out><xsl:for-each select="//item"><xsl:number/>,<xsl:number level="any"/>,<xsl:number level="multiple" count="*" format="1.A.i"/>,<xsl:number value="position() * 1000" grouping-separator="," grouping-size="3"/>;</xsl:for-each></out></xsl:template>"#,
                r#"<out>1,1,1.A,1,000;2,2,1.B,2,000;1,3,1.E.i,3,000;</out>"#,
            ),
            (
                "sort",
                r#"<xsl:template match="/"><out><xsl:for-each select="//item"><xsl:sort select="@n" data-type="number" order="descending"/><xsl:value-of select="@n"/>/<xsl:value-of select="position()"/>/<xsl:value-of select="last()"/> </xsl:for-each></out></xsl:template>"#,
                r#"<out>9/1/33/2/31/3/3</out>"#,
            ),
            (
                "key",
                r#"<xsl:key name="k" match="item" use="@n"/><xsl:key name="k2" match="*" use="name()"/><xsl:template match="/"><out><xsl:value-of select="key('k','1')"/><xsl:value-of select="count(key('k2','item'))"/><xsl:for-each select="key('k',//@n)"><xsl:value-of select="@n"/></xsl:for-each></out></xsl:template>"#,
                r#"<out>one3319</out>"#,
            ),
            (
                "axes",
                r#"<xsl:template match="/"><out><xsl:for-each select="//item[@n=1]"><xsl:value-of select="count(preceding::*)"/>,<xsl:value-of select="count(following::*)"/>,<xsl:value-of select="name(following-sibling::*[1])"/>,<xsl:value-of select="name(preceding-sibling::*[1])"/>,<xsl:value-of select="count(ancestor-or-self::node())"/>,<xsl:value-of select="name(//*[last()])"/></xsl:for-each></out></xsl:template>"#,
                r#"<out>2,5,para,item,3,doc</out>"#,
            ),
            (
                "strf",
                r#"<xsl:template match="/"><out><xsl:value-of select="concat(substring('12345',2,3),substring('12345',1.5,2.6),translate('bar','abc','AB'),normalize-space('  a  b '),string-length('äö'),substring-before('a/b','/'),substring-after('a/b','/'),round(2.5),round(-2.5),floor(-1.5),ceiling(1.2),5 mod -2,-5 mod 2,1 div 0,-1 div 0,0 div 0,1.0,1e3)"/></out></xsl:template>"#,
                r#"<out>234234BAra b2ab3-2-221-1Infinity-InfinityNaN11000</out>"#,
            ),
            (
                "strf2",
                r#"<xsl:template match="/"><out><xsl:value-of select="concat(number('12x'),boolean(''),not(0),sum(//@n),count(//item),format-number(1234.5,'#,##0.00'),generate-id(/)=generate-id(doc/..),lang('en'),string(true()),.1+.2,100000000000000000000,0.0000001,1 = 1.0)"/></out></xsl:template>"#,
                r#"<out>NaNfalsetrue1331,234.50truefalsetrue0.300000000000000041000000000000000000000.0000001true</out>"#,
            ),
            (
                "unionorder",
                r#"<xsl:template match="/"><out><xsl:for-each select="//sub | //item | /doc/@a"><xsl:value-of select="name()"/>,</xsl:for-each></out></xsl:template>"#,
                r#"<out>a,item,sub,item,item,</out>"#,
            ),
        ],
    );
}

#[test]
fn groups_and_order() {
    check(
        "2.0",
        &[
            (
                "group",
                r#"<xsl:template match="/"><out><xsl:for-each-group select="//item" group-by="@n mod 2"><xsl:sort select="current-grouping-key()"/><g k="{current-grouping-key()}"><xsl:value-of select="current-group()/@n" separator=","/></g></xsl:for-each-group></out></xsl:template>"#,
                r#"<out><g k="1">3,1,9</g></out>"#,
            ),
            (
                "adj",
                r#"<xsl:template match="/"><out><xsl:for-each-group select="1,1,2,1" group-adjacent="."><g><xsl:value-of select="current-group()"/></g></xsl:for-each-group></out></xsl:template>"#,
                r#"<out><g>1 1</g><g>2</g><g>1</g></out>"#,
            ),
            (
                "starting",
                r#"<xsl:template match="/"><out><xsl:for-each-group select="doc/*" group-starting-with="item"><g><xsl:value-of select="current-group()/name()"/></g></xsl:for-each-group></out></xsl:template>"#,
                r#"<out><g>item</g><g>item para e deep</g></out>"#,
            ),
            (
                "ending",
                r#"<xsl:template match="/"><out><xsl:for-each-group select="doc/*" group-ending-with="item"><g><xsl:value-of select="current-group()/name()"/></g></xsl:for-each-group></out></xsl:template>"#,
                r#"<out><g>item</g><g>item</g><g>para e deep</g></out>"#,
            ),
            (
                "group2",
                r#"<xsl:template match="/"><out><xsl:for-each-group select="//item" group-by="@n"><xsl:value-of select="position()"/>/<xsl:value-of select="last()"/>;</xsl:for-each-group></out></xsl:template>"#,
                r#"<out>1/3;2/3;3/3;</out>"#,
            ),
            (
                "perform",
                r#"<xsl:template match="/"><out><xsl:variable name="s" as="item()*"><xsl:perform-sort select="//item"><xsl:sort select="number(@n)"/></xsl:perform-sort></xsl:variable><xsl:value-of select="$s/@n"/>|<xsl:value-of select="for $i in $s return string($i/@n)"/></out></xsl:template>"#,
                r#"<out>3 1 9|1 3 9</out>"#,
            ),
            (
                "sorted2",
                r#"<xsl:template match="/"><out><xsl:for-each select="//item"><xsl:sort select="xs:integer(@n)"/><xsl:value-of select="@n"/></xsl:for-each></out></xsl:template>"#,
                r#"<out>139</out>"#,
            ),
        ],
    );
}

#[test]
fn templates_and_functions() {
    check(
        "2.0",
        &[
            (
                "function",
                r#"<xsl:function name="f:fact" as="xs:integer"><xsl:param name="n" as="xs:integer"/><xsl:sequence select="if ($n le 1) then 1 else $n * f:fact($n - 1)"/></xsl:function><xsl:template match="/"><out><xsl:value-of select="f:fact(10)"/></out></xsl:template>"#,
                r#"<out>3628800</out>"#,
            ),
            (
                "nextmatch",
                r#"<xsl:template match="item" priority="2">[<xsl:next-match/>]</xsl:template><xsl:template match="item">{<xsl:value-of select="@n"/>}</xsl:template><xsl:template match="/"><out><xsl:apply-templates select="//item"/></out></xsl:template>"#,
                r#"<out>[{3}][{1}][{9}]</out>"#,
            ),
            (
                "tunnel",
                r#"<xsl:template match="/"><out><xsl:apply-templates select="doc"><xsl:with-param name="t" select="7" tunnel="yes"/></xsl:apply-templates></out></xsl:template><xsl:template match="doc"><xsl:apply-templates select="e"/></xsl:template><xsl:template match="e"><xsl:param name="t" tunnel="yes" select="0"/><xsl:value-of select="$t"/></xsl:template>"#,
                r#"<out>7</out>"#,
            ),
            (
                "builtinparam",
                r#"<xsl:template match="/"><out><xsl:apply-templates select="doc/deep"><xsl:with-param name="p" select="5"/></xsl:apply-templates></out></xsl:template><xsl:template match="item"><xsl:param name="p" select="0"/><xsl:value-of select="$p"/></xsl:template>"#,
                r#"<out>5</out>"#,
            ),
            (
                "modes",
                r##"<xsl:template match="e" mode="a b">x</xsl:template><xsl:template match="e" mode="#all">y</xsl:template><xsl:template match="/"><out><xsl:apply-templates select="//e" mode="a"/><xsl:apply-templates select="//e" mode="b"/><xsl:apply-templates select="//e"/></out></xsl:template>"##,
                r#"<out>yyy</out>"#,
            ),
            (
                "copyfn",
                r#"<xsl:function name="f:w"><xsl:param name="x"/><w><xsl:value-of select="$x"/></w></xsl:function><xsl:template match="/"><out><xsl:copy-of select="f:w(3)"/></out></xsl:template>"#,
                r#"<out><w>3</w></out>"#,
            ),
            (
                "nested",
                r#"<xsl:template match="/"><xsl:variable name="t"><x><y>1</y></x></xsl:variable><out><xsl:value-of select="$t/x/y"/><xsl:apply-templates select="$t" mode="q"/></out></xsl:template><xsl:template match="y" mode="q">Y</xsl:template>"#,
                r#"<out>1Y</out>"#,
            ),
        ],
    );
}

#[test]
fn sequences_and_types() {
    check(
        "2.0",
        &[
            (
                "sep",
                r#"<xsl:template match="/"><out a="{1 to 3}"><xsl:value-of select="1 to 4" separator="-"/>|<xsl:value-of select="//item/@n"/></out></xsl:template>"#,
                r#"<out a="1 2 3">1-2-3-4|3 1 9</out>"#,
            ),
            (
                "asvar",
                r#"<xsl:template match="/"><xsl:variable name="v" as="element()*"><a/><b/></xsl:variable><out n="{count($v)}"><xsl:copy-of select="$v[2]"/></out></xsl:template>"#,
                r#"<out n="2"><b/></out>"#,
            ),
            (
                "asint",
                r#"<xsl:template match="/"><xsl:variable name="v" as="xs:integer" select="3"/><out><xsl:value-of select="$v instance of xs:integer"/></out></xsl:template>"#,
                r#"<out>true</out>"#,
            ),
            (
                "seqattr",
                r#"<xsl:template match="/"><out><xsl:sequence select="doc/@a"/><xsl:sequence select="1,2"/><xsl:sequence select="doc/e"/></out></xsl:template>"#,
                r#"<out a="1">1 2<e/></out>"#,
            ),
            (
                "valuebody",
                r#"<xsl:template match="/"><out><xsl:value-of>a<xsl:value-of select="1"/></xsl:value-of></out></xsl:template>"#,
                r#"<out>a1</out>"#,
            ),
            (
                "attrval",
                r#"<xsl:template match="/"><out><xsl:attribute name="x" select="1 to 3" separator=","/></out></xsl:template>"#,
                r#"<out x="1,2,3"/>"#,
            ),
            (
                "namespaceinstr",
                r#"<xsl:template match="/"><out><xsl:namespace name="z">urn:z</xsl:namespace></out></xsl:template>"#,
                r#"<out xmlns:z="urn:z"/>"#,
            ),
        ],
    );
}

#[test]
fn texts_and_dates() {
    check(
        "2.0",
        &[
            (
                "analyze",
                r#"<xsl:template match="/"><out><xsl:analyze-string select="'a12b345c'" regex="([0-9])([0-9]+)"><xsl:matching-substring><m a="{regex-group(1)}" b="{regex-group(2)}"/></xsl:matching-substring><xsl:non-matching-substring><n><xsl:value-of select="."/></n></xsl:non-matching-substring></xsl:analyze-string></out></xsl:template>"#,
                r#"<out><n>a</n><m a="1" b="2"/><n>b</n><m a="3" b="45"/><n>c</n></out>"#,
            ),
            (
                "xpath2",
                r#"<xsl:template match="/"><out><xsl:value-of select="string-join(for $x in //item return upper-case($x/@n), '+')"/>|<xsl:value-of select="tokenize('a,b',',')"/>|<xsl:value-of select="replace('abc','b','x')"/>|<xsl:value-of select="some $x in //item satisfies $x/@n = 9"/>|<xsl:value-of select="distinct-values((1,2,1))"/>|<xsl:value-of select="matches('abc','^a')"/></out></xsl:template>"#,
                r#"<out>3+1+9|a b|axc|true|1 2|true</out>"#,
            ),
            (
                "dt",
                r#"<xsl:template match="/"><out><xsl:value-of select="format-date(xs:date('2024-02-29'),'[D01]/[M01]/[Y0001]')"/></out></xsl:template>"#,
                r#"<out>29/02/2024</out>"#,
            ),
        ],
    );
}
