//! The types of XPath 2.0: casts, comparison, arithmetic and arguments, by table.

mod common;

use common::check_all;
use penstock_xpath::Version;

#[test]
fn derived_types() {
    check_all(
        Version::Two,
        &[
            ("300 castable as xs:byte", "false"),
            ("xs:byte(300)", "FORG0001"),
            ("300 instance of xs:byte", "false"),
            ("xs:byte(5) instance of xs:short", "true"),
            ("xs:short(5) instance of xs:byte", "false"),
            ("(xs:byte(5) + xs:byte(5)) instance of xs:byte", "false"),
            ("xs:byte(5) eq 5.0", "true"),
            ("'a b' castable as xs:NCName", "false"),
            ("xs:token(' a  b ')", "a b"),
            ("xs:token('a') instance of xs:string", "true"),
            ("upper-case(xs:NCName('ab'))", "AB"),
            ("xs:language('en-GB'), xs:Name('a:b')", "en-GB | a:b"),
            ("xs:unsignedLong('18446744073709551615') + 1", "18446744073709551616"),
            ("5 cast as xs:anyAtomicType", "static XPST0080"),
            ("'a' cast as xs:NOTATION", "static XPST0080"),
            ("5 cast as xs:nothing", "static XPST0051"),
        ],
    );
}

#[test]
fn partial_dates_and_binary_values() {
    check_all(
        Version::Two,
        &[
            ("xs:gYear('2001')", "2001"),
            ("xs:gYear(xs:date('2001-05-06Z'))", "2001Z"),
            ("xs:gMonthDay(xs:dateTime('2001-02-28T10:00:00'))", "--02-28"),
            ("xs:gYear('2001') eq xs:gYear('2001Z')", "true"),
            ("xs:gYear('2001') lt xs:gYear('2002')", "XPTY0004"),
            ("xs:gMonth('--13')", "FORG0001"),
            ("xs:base64Binary(xs:hexBinary('616263'))", "YWJj"),
            ("xs:hexBinary('ab') eq xs:hexBinary('AB')", "true"),
            ("xs:hexBinary('61') eq xs:base64Binary('YQ==')", "XPTY0004"),
            ("count(distinct-values((xs:hexBinary('aa'), xs:hexBinary('AA'))))", "1"),
        ],
    );
}

#[test]
fn comparison_promotes_numbers() {
    check_all(
        Version::Two,
        &[
            ("xs:float(1.01) = 1.01", "true"),
            ("xs:float(1.1) eq 1.1e0", "false"),
            ("deep-equal(xs:float(1.01), 1.01)", "true"),
            ("max((1, xs:float(2))) instance of xs:float", "true"),
            ("min((1, 2.5e0)) instance of xs:double", "true"),
            ("max(('a', xs:anyURI('b'))) instance of xs:string", "true"),
            ("xs:float(3) idiv xs:float(0.1)", "30"),
            ("2 div 3", "0.666666666666666667"),
            ("9223372036854775807 * 9223372036854775807", "85070591730234615847396907784232501249"),
            ("xs:untypedAtomic('1') eq 1", "XPTY0004"),
            ("xs:untypedAtomic('1') = 1", "true"),
            ("xs:duration('P1Y') lt xs:duration('P2Y')", "XPTY0004"),
            ("xs:yearMonthDuration('P1Y') = xs:duration('P12M')", "true"),
            ("xs:yearMonthDuration('P1Y') * xs:double('NaN')", "FOCA0005"),
            ("xs:integer(xs:double('NaN'))", "FOCA0002"),
        ],
    );
}

#[test]
fn arguments_have_types() {
    check_all(
        Version::Two,
        &[
            ("substring('abc', 'b')", "XPTY0004"),
            ("substring('abc', ())", "XPTY0004"),
            ("matches('a', ())", "XPTY0004"),
            ("name(//order)", "XPTY0004"),
            ("subsequence((1, 2, 3), xs:untypedAtomic('2'))", "2 | 3"),
            ("subsequence((1, 2, 3), xs:untypedAtomic('x'))", "FORG0001"),
            ("concat((1, 2), 'a')", "XPTY0004"),
            ("index-of(5, ())", "XPTY0004"),
            ("codepoints-to-string('a')", "XPTY0004"),
            ("string(round-half-to-even(-0.4e0))", "-0"),
            ("normalize-unicode('e\u{301}')", "é"),
            ("normalize-unicode('x', 'nothing')", "FOCH0003"),
            ("collection()", "FODC0002"),
            ("resolve-uri('a', 'b')", "FORG0002"),
            ("10div 3", "static XPST0003"),
        ],
    );
    // XPath 1.0 converts any argument.
    check_all(Version::One, &[("substring('abc', '2')", "bc"), ("name(//order)", "order"), ("10div 4", "2.5")]);
}

#[test]
fn kind_tests_with_types() {
    check_all(
        Version::Two,
        &[
            ("count(//element(order, xs:untyped))", "5"),
            ("count(//element(order, xs:integer))", "0"),
            ("count(//attribute(id, xs:untypedAtomic))", "5"),
            ("count(/self::document-node(element(orders)))", "1"),
            ("count(/self::document-node(element(other)))", "0"),
            ("(/) instance of document-node(element(orders))", "true"),
            ("//schema-element(order)", "static XPST0008"),
        ],
    );
}

#[test]
fn large_sequences_are_hashed_and_indexed() {
    check_all(
        Version::Two,
        &[
            // Comparing each with each would take more than the fuel of an evaluation.
            ("1 to 20000 = 40000 to 60000", "false"),
            ("(for $i in 1 to 20000 return string($i)) = (for $i in 20000 to 40000 return string($i))", "true"),
            ("(for $i in 1 to 20000 return xs:untypedAtomic($i)) = 40000 to 60000", "false"),
            ("count(distinct-values((1 to 20000, for $i in 1 to 20000 return $i * 1e0)))", "20000"),
            ("for $s in (3, 1) return let $all := 1 to 5 return $all[$s]", "3 | 1"),
            ("let $all := 1 to 9999 return count(for $i in 1 to 9999 return $all[$i])", "9999"),
            ("let $n := 2.5 return (1 to 5)[$n]", ""),
            ("let $t := true() return count((1 to 5)[$t])", "5"),
            ("let $n := () return (1 to 5)[$n]", ""),
        ],
    );
}

#[test]
fn items_stay_small() {
    // Sequences are arrays of items; maps, arrays and functions are to fit behind one pointer too.
    assert_eq!(size_of::<penstock_xpath::Item>(), 24);
}
