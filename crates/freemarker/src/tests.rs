//! Templates, data and what comes out.

use serde_json::Value as Json;

use super::*;

fn render(template: &str, payload: &str) -> Result<String, TemplateError> {
    let json: Json = serde_json::from_str(payload).unwrap();
    let template = Template::parse(template)?;
    let model = Model { roots: vec![("payload", Data::of_json(&json))], ..Model::default() };
    template.render(&model)
}

fn check(payload: &str, cases: &[(&str, &str)]) {
    for (template, expected) in cases {
        let got = render(template, payload).unwrap_or_else(|error| panic!("{template}: {error}"));
        assert_eq!(got, *expected, "{template}");
    }
}

const ORDER: &str = r#"{"id": 1234567, "name": "Ann \"B\" <C>", "vip": true, "rate": 0.125, "lines": [
    {"sku": "b", "n": 2}, {"sku": "A", "n": 10}, {"sku": "c", "n": 1}], "none": null, "tags": [], "a-b": "x"}"#;

#[test]
fn values_are_written() {
    check(
        ORDER,
        &[
            ("${payload.name}", "Ann \"B\" <C>"),
            // Numbers are formatted for people; `?c` formats them for computers.
            ("${payload.id} ${payload.id?c} ${payload.rate}", "1,234,567 1234567 0.125"),
            ("${payload.vip?c} ${payload.vip?string('yes', 'no')} ${payload.vip?then(1, 2)}", "true yes 1"),
            ("${payload['name']?length} ${payload.lines[1].sku} ${payload.a\\-b}", "11 A x"),
            ("${payload.gone!} ${payload.gone!'d'} ${(payload.no.thing)!\"e\"} ${payload.none!'n'}", " d e n"),
            ("${1 + 2 * 3 - 4 / 8} ${7 % 4} ${-2?abs} ${(-2)?abs}", "6.5 3 -2 2"),
            ("${'a' + 1 + 'b'} ${\"in ${payload.lines[0].sku} side\"} ${r'${x}'}", "a1b in b side ${x}"),
            ("${1.005?string('0.00')} ${1234.5?string('#,##0.00')} ${0.256?string('0%')}", "1.00 1,234.50 26%"),
            (
                "#{1} ${[1,2,3]?join(', ')} ${{'k': 'v'}.k} ${(1..3)?join('')} ${[5,6,7][1..]?join('-')}",
                "1 1, 2, 3 v 123 6-7",
            ),
        ],
    );
}

#[test]
fn tags_decide_and_repeat() {
    check(
        ORDER,
        &[
            ("<#if payload.id gt 5>big<#elseif payload.id == 5>five<#else>small</#if>", "big"),
            ("<#if (payload.id > 5) && !payload.gone??>a</#if>", "a"),
            ("<#if payload.tags?has_content>a<#else>b</#if>", "b"),
            ("<#list payload.lines as l>${l?index}${l.sku}<#sep>,</#list>", "0b,1A,2c"),
            ("<#list payload.lines as l>${l?counter}<#if l?has_next>;</#if><#if l?is_last>!</#if></#list>", "1;2;3!"),
            ("<#list payload.lines as l>${l_index}<#if l_has_next>;</#if></#list>", "0;1;2"),
            ("<#list payload.tags as t>${t}<#else>none</#list>", "none"),
            ("<#list payload.lines>[<#items as l>${l.n}<#sep>,</#items>]<#else>none</#list>", "[2,10,1]"),
            ("<#list {'a': 1, 'b': 2} as k, v>${k}=${v};</#list>", "a=1;b=2;"),
            (
                "<#list payload.lines?sort_by('sku') as l>${l.sku}</#list> ${payload.lines?sort_by('n')?reverse?first.n}",
                "Abc 10",
            ),
            ("<#list 1..5 as i><#if i == 2><#continue></#if><#if i == 4><#break></#if>${i}</#list>", "13"),
            ("<#assign n = 1 m = 2><#assign n += m>${n}<#assign t>x${n}</#assign>${t}", "3x3"),
            (
                "<#macro greet who='you' more...>Hi ${who}<#nested>!</#macro><@greet/> <@greet who='me'> there</@greet>",
                "Hi you! Hi me there!",
            ),
            (
                "<#macro each of><#list of as o><#nested o, o?counter></#list></#macro><@each of=['a','b'] ; x, n>${n}${x} </@each>",
                "1a 2b ",
            ),
            ("<#function twice x><#return x * 2></#function>${twice(4)}", "8"),
            (
                "<#switch payload.lines[0].sku><#case 'a'>1<#break><#case 'b'>2<#case 'c'>3<#break><#default>4</#switch>",
                "23",
            ),
            ("<#attempt>${payload.gone}<#recover>oops</#attempt>", "oops"),
            ("a<#-- ${not} <#if --> b<#noparse>${x}<#if></#noparse>", "a b${x}<#if>"),
            ("<#escape x as x?html>${payload.name}</#escape>", "Ann &quot;B&quot; &lt;C&gt;"),
            (
                "${payload.lines?map(l -> l.n)?join('+')} ${payload.lines?filter(l -> l.n gt 1)?size} ${payload?keys?size}",
                "2+10+1 2 8",
            ),
        ],
    );
}

#[test]
fn lines_of_tags_leave_nothing_behind() {
    check(
        ORDER,
        &[
            ("{\n  <#if payload.vip>\n  \"a\": 1\n  </#if>\n}", "{\n  \"a\": 1\n}"),
            ("<#list [1, 2] as i>\n- ${i}\n</#list>\nend", "- 1\n- 2\nend"),
            ("a <#if true>b</#if>\nc", "a b\nc"),
            ("<#assign x = 1>\n<#-- note -->\n${x}", "1"),
        ],
    );
}

#[test]
fn texts_have_built_ins() {
    check(
        ORDER,
        &[
            ("${'  a B c '?trim?upper_case} ${'ab cd'?capitalize} ${'ab'?cap_first}", "A B C Ab Cd Ab"),
            ("${payload.name?json_string} ${'<&>'?xml} ${'a b&c'?url}", "Ann \\\"B\\\" <C> &lt;&amp;&gt; a%20b%26c"),
            ("${'a-b-c'?replace('-', '+')} ${'a1b2'?replace('[0-9]', '', 'r')} ${'a,b'?split(',')?size}", "a+b+c ab 2"),
            ("${'abc'?substring(1, 2)} ${'abc'[0]} ${'abc'[1..]} ${'7'?left_pad(3, '0')}", "b a bc 007"),
            ("${'abc'?contains('b')?c} ${'abc'?starts_with('b')?c} ${'a.b.c'?keep_after_last('.')}", "true false c"),
            ("${'12.5'?number + 1} ${3.7?floor} ${3.2?ceiling} ${2.5?round} ${'x'?is_string?c}", "13.5 3 4 3 true"),
            ("${'abc'?matches('[a-c]+')?string('y', 'n')} ${'{\"a\": [1, 2]}'?eval_json.a[1]}", "y 2"),
        ],
    );
}

#[test]
fn mistakes_have_places() {
    for (template, expected) in [
        ("${payload.gone}", "1:10: `payload.gone` is missing; `!` sets a default, `??` tests for it"),
        ("a\n ${payload.gone.more}", "2:11: `payload.gone` is missing; `!` sets a default, `??` tests for it"),
        ("<#if payload.vip>", "1:1: <#if> is never closed"),
        ("<#list x as y></#if>", "1:7: <#list> is never closed: </#if> comes first"),
        ("</#if>", "1:1: </#if> closes nothing"),
        ("${1 +}", "1:6: an expression is missing here"),
        ("${", "1:1: the `${` is never closed"),
        ("<#frob>", "1:7: there is no directive <#frob>"),
        ("${payload.name?frob}", "1:15: there is no built-in `?frob` for a text"),
        ("${payload.lines}", "1:10: `payload.lines` is a list, which is not a text"),
        ("<#list 1..9 as a><#list 1..99999999 as b></#list></#list>", "1:24: the range has more than 1000000 items"),
        ("<#macro m><@m/></#macro><@m/>", "1:11: loops and macros are nested deeper than 100"),
    ] {
        let error = render(template, ORDER).err().unwrap_or_else(|| panic!("{template} works"));
        // The place of a tag is where what it holds begins; only the message is compared for those.
        let message = expected.split_once(": ").map_or(expected, |(_, message)| message);
        assert_eq!(error.message, message, "{template} at {error}");
    }
    let error = render("a\n ${payload.gone.more}", ORDER).unwrap_err();
    assert_eq!((error.line, error.column), (2, 11));
}

/// What fails, breaks off or returns in the middle leaves no trace: a loop of two hundred rounds is no deeper for it.
#[test]
fn nesting_is_counted_back() {
    check(
        ORDER,
        &[
            (
                "<#list 1..200 as i><#attempt><#list 1..2 as j>${payload.gone}</#list><#recover>x</#attempt></#list>",
                &*"x".repeat(200),
            ),
            (
                "<#function one of><#list of as o><#return o></#list></#function><#list 1..200 as i>${one([7, 8])}</#list>",
                &*"7".repeat(200),
            ),
            ("<#list 1..200 as i><#list 1..3 as j><#break></#list>y</#list>", &*"y".repeat(200)),
            ("<#macro m><@m/></#macro><#list 1..3 as i><#attempt><@m/><#recover>d</#attempt></#list>", "ddd"),
        ],
    );
}

#[test]
fn lists_end_where_they_end() {
    check(
        ORDER,
        &[
            ("${payload.tags?first!'none'} ${payload.tags?last!'none'} ${payload.lines?last.sku}", "none none c"),
            ("${payload.lines[7]!'none'} ${payload.tags[0]!'none'} ${(payload.lines[-1])!'none'}", "none none none"),
            (
                "${[1, 2, 3][1..*9]?join('')} ${[1, 2, 3][5..]?size} ${[1, 2, 3][2..*99999999999999999999]?join('')}",
                "23 0 3",
            ),
            ("${'abc'[1..99999999999999999999]}", "bc"),
            (
                "${['a', 'b']?seq_contains('b')?c} ${['a', 'b', 'a']?seq_last_index_of('a')} ${[]?seq_index_of('a')}",
                "true 2 -1",
            ),
            ("<#list [[1, 2], [3]] as row><#list row as cell>${cell}<#sep>,</#list><#sep>;</#list>", "1,2;3"),
            ("<#list {'a': 1}><#items as k, v>${k}${v}</#items></#list><#list {'a': 1} as k>${k}</#list>", "a1a"),
        ],
    );
}

#[test]
fn a_way_to_everything_mentions_everything() {
    let mentions = |template: &str| Template::parse(template).unwrap().mentions("payload");
    assert!(mentions("${payload.a}") && mentions("${.data_model.payload.a}") && mentions("${.data_model['payload']}"));
    assert!(!mentions("${other.payload} payload"));
}

#[test]
fn nodes_are_walked() {
    let document = penstock_xml::Document::parse(
        "<order xmlns='urn:o' id='7'><line n='1'>a</line><line n='2'>b</line><to><name>Ann</name></to></order>",
        &penstock_xml::ParseOptions::default(),
    )
    .unwrap();
    let model =
        Model { roots: vec![("payload", Data::node(&document, penstock_xml::Document::ROOT))], ..Model::default() };
    for (template, expected) in [
        ("${payload.order.to.name} ${payload.order.@id}", "Ann 7"),
        (
            "<#list payload.order.line as l>${l.@n}${l};</#list>${payload.order.line[1]} ${payload.order.line?size}",
            "1a;2b;b 2",
        ),
        ("${payload.order.to?children?size} ${payload.order.gone!'-'} ${payload.order?node_name}", "1 - order"),
        ("<#if payload.order.@id?number == 7>yes</#if>", "yes"),
    ] {
        assert_eq!(Template::parse(template).unwrap().render(&model).unwrap(), expected, "{template}");
    }
}
