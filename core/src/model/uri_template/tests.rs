use super::*;
use serde_json::json;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

/// The variables of RFC 6570, section 3.2.
fn variables() -> Map<String, Value> {
    object(json!({
        "count": ["one", "two", "three"], "dom": ["example", "com"], "dub": "me/too", "hello": "Hello World!",
        "half": "50%", "var": "value", "who": "fred", "base": "http://example.com/home/", "path": "/foo/bar",
        "list": ["red", "green", "blue"], "keys": {"semi": ";", "dot": ".", "comma": ","}, "v": "6", "x": "1024",
        "y": "768", "empty": "", "empty_keys": {}, "undef": null,
    }))
}

#[test]
fn expansion_is_that_of_the_rfc() {
    for (template, expected) in [
        // 3.2.1
        ("{count}", "one,two,three"),
        ("{count*}", "one,two,three"),
        ("{/count}", "/one,two,three"),
        ("{/count*}", "/one/two/three"),
        ("{;count}", ";count=one,two,three"),
        ("{;count*}", ";count=one;count=two;count=three"),
        ("{?count}", "?count=one,two,three"),
        ("{?count*}", "?count=one&count=two&count=three"),
        ("{&count*}", "&count=one&count=two&count=three"),
        // 3.2.2
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        // 3.2.3
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("O{+undef}X", "OX"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+list}", "red,green,blue"),
        ("{+list*}", "red,green,blue"),
        ("{+keys}", "semi,;,dot,.,comma,,"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        // 3.2.4
        ("{#var}", "#value"),
        ("{#hello}", "#Hello%20World!"),
        ("{#half}", "#50%25"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("{#path:6}/here", "#/foo/b/here"),
        ("{#list}", "#red,green,blue"),
        ("{#list*}", "#red,green,blue"),
        ("{#keys}", "#semi,;,dot,.,comma,,"),
        ("{#keys*}", "#semi=;,dot=.,comma=,"),
        // 3.2.5
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("{.half,who}", ".50%25.fred"),
        ("www{.dom*}", "www.example.com"),
        ("X{.var}", "X.value"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("X{.var:3}", "X.val"),
        ("X{.list}", "X.red,green,blue"),
        ("X{.list*}", "X.red.green.blue"),
        ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
        ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
        ("X{.empty_keys}", "X"),
        ("X{.empty_keys*}", "X"),
        // 3.2.6
        ("{/who}", "/fred"),
        ("{/who,who}", "/fred/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/who,dub}", "/fred/me%2Ftoo"),
        ("{/var}", "/value"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/var:1,var}", "/v/value"),
        ("{/list}", "/red,green,blue"),
        ("{/list*}", "/red/green/blue"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{/keys}", "/semi,%3B,dot,.,comma,%2C"),
        ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        // 3.2.7
        ("{;who}", ";who=fred"),
        ("{;half}", ";half=50%25"),
        ("{;empty}", ";empty"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;v,bar,who}", ";v=6;who=fred"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;x,y,undef}", ";x=1024;y=768"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;list}", ";list=red,green,blue"),
        ("{;list*}", ";list=red;list=green;list=blue"),
        ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        // 3.2.8
        ("{?who}", "?who=fred"),
        ("{?half}", "?half=50%25"),
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{?var:3}", "?var=val"),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
        ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        // 3.2.9
        ("{&who}", "&who=fred"),
        ("{&half}", "&half=50%25"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ("{&x,y,undef}", "&x=1024&y=768"),
        ("{&var:3}", "&var=val"),
        ("{&list}", "&list=red,green,blue"),
        ("{&list*}", "&list=red&list=green&list=blue"),
        ("{&keys}", "&keys=semi,%3B,dot,.,comma,%2C"),
        ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
    ] {
        let expanded = UriTemplate::parse(template).and_then(|t| t.expand(&variables()));
        assert_eq!(expanded.unwrap_or_else(|e| panic!("{template}: {e}")), expected, "{template}");
    }
}

#[test]
fn values_that_do_not_fit_are_named() {
    let expand = |template: &str, value: Value| {
        let expanded = UriTemplate::parse(template).expect("a template").expand(&object(json!({"a": value})));
        expanded.unwrap_or_else(|e| e.message().to_owned())
    };
    assert_eq!(expand("{a}", json!(1.5)), "1.5");
    assert_eq!(expand("{a*}", json!([true, null, 2])), "true,2");
    assert_eq!(expand("{?a}", json!([])), "");
    assert!(expand("{a}", json!([[1]])).contains(r#"variable "a": what is in a list"#));
    assert!(expand("{a:3}", json!(["x"])).contains(r#"variable "a": a list or an object has no first characters"#));
    assert!(expand("{a}", json!("x".repeat(MAX_BYTES + 1))).contains("longer than 8192 bytes"));
    assert!(expand("{?a*}", json!(vec![1; 1_000_000])).contains("longer than 8192 bytes"));
    assert!(expand("{a}", json!("ä".repeat(MAX_BYTES / 4))).contains("longer than 8192 bytes"));
}

#[test]
fn what_is_wrong_with_a_template_is_said_with_its_place() {
    let refuse = |template: &str| UriTemplate::parse(template).expect_err(template).message().to_owned();
    for (template, why) in [
        ("a/{b", "at byte 2: \"{\" is never closed"),
        ("a}b", "at byte 1: \"}\" closes nothing"),
        ("a/{}", "at byte 3: \"{}\" names no variable"),
        ("{a,}", "at byte 3: a variable's name is missing"),
        ("{?}", "at byte 2: a variable's name is missing"),
        ("{user-id}", "at byte 5: '-' in a variable's name"),
        ("{ä}", "at byte 1: 'ä' in a variable's name"),
        ("{a..b}", "at byte 3: '.' in a variable's name"),
        ("{a.}", "at byte 2: a variable's name ends with a dot"),
        ("{a:0}", "at byte 3: a length is 1 to 9999"),
        ("{a:10000}", "at byte 3: a length is 1 to 9999"),
        ("{a:+1}", "at byte 3: a length is 1 to 9999"),
        ("{a:}", "at byte 3: a length is 1 to 9999"),
        ("{=a}", "at byte 1: operator '=' has no meaning yet"),
        ("{{a}}", "at byte 1: '{' in a variable's name"),
        ("a b", "at byte 1: ' ' must be percent-encoded"),
        ("50%", "at byte 2: \"%\" is not followed by two"),
        ("a\n", "at byte 1: control character"),
    ] {
        assert!(refuse(template).contains(why), "{template}: {}", refuse(template));
    }
    assert!(refuse(&"{a}".repeat(65)).contains("more than 64 expressions"));
    assert!(refuse(&"a".repeat(MAX_BYTES + 1)).contains("8193 bytes, at most 8192"));
    assert!(refuse(&format!("{{{}}}", "-".repeat(5000))).len() < 500);
    assert!(UriTemplate::parse(&"{a}".repeat(64)).is_ok());
    assert!(UriTemplate::parse(&"é".repeat(MAX_BYTES / 2)).is_ok());
    assert!(UriTemplate::parse("").is_ok());
}

#[test]
fn variables_are_named_once_in_order() {
    let template = UriTemplate::parse("x://{b}/{a:3}{/b*}{?c,a}").expect("a template");
    assert_eq!(template.variables().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(template.to_string(), "x://{b}/{a:3}{/b*}{?c,a}");
}

fn matched(template: &str, uri: &str) -> Value {
    UriTemplate::parse(template).expect(template).matches(uri).map_or(Value::Null, Value::Object)
}

#[test]
fn a_uri_gives_the_values_back() {
    for (template, uri, expected) in [
        ("file:///a.txt", "file:///a.txt", json!({})),
        ("file:///a.txt", "file:///aXtxt", Value::Null),
        ("users://{id}/profile", "users://42/profile", json!({"id": "42"})),
        ("users://{id}/profile", "users://a%40b.c%2Fd/profile", json!({"id": "a@b.c/d"})),
        ("users://{id}/profile", "users://a@b.c/profile", json!({"id": "a@b.c"})),
        ("users://{id}/profile", "users://a/b/profile", Value::Null),
        ("users://{id}/profile", "users:///profile", Value::Null),
        ("users://{id}", "users://1?x=1", Value::Null),
        ("users://{id}", "users://1#x", Value::Null),
        ("users://{id}", "xusers://1", Value::Null),
        ("users://{id}", "users://50%", Value::Null),
        ("users://{id}", "users://%ff", Value::Null),
        ("file:///{+path}", "file:///a/b/c.txt", json!({"path": "a/b/c.txt"})),
        ("file:///{+path}", "file:///", Value::Null),
        ("file:///{+path}", "file:///a?b#c", json!({"path": "a?b#c"})),
        ("file:///{+path}{?v}", "file:///a/b?v=1", json!({"path": "a/b", "v": "1"})),
        ("file:///{+path}{#at}", "file:///a/b#l1,2", json!({"path": "a/b", "at": "l1,2"})),
        ("git://{+path}/at/{rev}", "git://a/at/b/at/1", json!({"path": "a/at/b", "rev": "1"})),
        ("x:/{path}", "x:/../etc", Value::Null),
        ("docs:{/path*}", "docs:/a/b%2Fc/", json!({"path": ["a", "b/c", ""]})),
        ("docs:{/path*}", "docs:", json!({})),
        ("docs:{/a,b}", "docs:/1/2", json!({"a": "1", "b": "2"})),
        ("docs:{/a,b}", "docs:/1", json!({"a": "1"})),
        ("docs:{/a,b}", "docs:/1/2/3", Value::Null),
        ("docs:{/a,b*,c}", "docs:/1/2/3/4", json!({"a": "1", "b": ["2", "3"], "c": "4"})),
        ("docs:{/a,b*,c}", "docs:/1/2", json!({"a": "1", "c": "2"})),
        ("docs:{/a:1,a}", "docs:/v/value", json!({"a": "value"})),
        ("docs:{/a:1,a}", "docs:/x/value", Value::Null),
        ("docs:{/a:1}", "docs:/va", Value::Null),
        ("{x,y}", "1024,768", json!({"x": "1024", "y": "768"})),
        ("{x}", "a,b", json!({"x": "a,b"})),
        ("{x*}", "a,b%2Cc", json!({"x": ["a", "b,c"]})),
        ("x/{a}/{a}", "x/1/1", json!({"a": "1"})),
        ("x/{a}/{a}", "x/1/2", Value::Null),
        ("{name}{.ext}", "a.txt", json!({"name": "a", "ext": "txt"})),
        ("{name}{.ext}", "a", json!({"name": "a"})),
        ("{+path}{.ext}", "a.b/c.txt", json!({"path": "a.b/c", "ext": "txt"})),
        ("www{.dom*}", "www.example.com", json!({"dom": ["example", "com"]})),
        ("p{;a,b}", "p;b=2;a=1", json!({"a": "1", "b": "2"})),
        ("{p}{;a,b}", "p;a", json!({"p": "p", "a": ""})),
        ("p{;a*}", "p;a=1;a=2", json!({"a": ["1", "2"]})),
        ("s{?q,n}", "s", json!({})),
        ("s{?q,n}", "s?", json!({})),
        ("s{?q,n}", "s?n=1&q=a%20b", json!({"n": "1", "q": "a b"})),
        ("s{?q,n}", "s?q=1&x=2", Value::Null),
        ("s{?q,n}", "s?q=1&q=2", Value::Null),
        ("s{?q*,n}", "s?q=1&n=3&q=2", json!({"q": ["1", "2"], "n": "3"})),
        ("s{?a}{&b}", "s?b=2&a=1", json!({"a": "1", "b": "2"})),
        ("s?fixed=1{&b}", "s?fixed=1&b=2", json!({"b": "2"})),
        ("s?q={q}{&b}", "s?q=1&b=2", json!({"q": "1", "b": "2"})),
        ("s{?q}{#f}", "s?q=1#x/y", json!({"q": "1", "f": "x/y"})),
        ("é/{a}", "%C3%a9/b", json!({"a": "b"})),
        ("é/{a}", "é/ü", json!({"a": "ü"})),
        ("%c3%A9/{a}", "%C3%a9/b", json!({"a": "b"})),
    ] {
        assert_eq!(matched(template, uri), expected, "{template} ~ {uri}");
    }
}

#[test]
fn what_was_expanded_is_matched() {
    let values = object(json!({"a": "ä/ö?#%", "b": "x,y&=;", "l": ["1,2", "/", "&"]}));
    for template in ["s://{a}/{b}/{l*}", "s:{/a,b,l*}", "s{;a,b,l*}", "s{?a,b,l*}", "s?x{&a,b,l*}", "s{#a}{?b}x{&l*}"] {
        let template = UriTemplate::parse(template).expect(template);
        let uri = template.expand(&values).expect("expanded");
        let found = template.matches(&uri);
        if !template.as_str().contains('#') {
            assert_eq!(found.as_ref(), Some(&values), "{template}: {uri}");
        }
    }
}

#[test]
fn matching_takes_linear_time() {
    let hostile = "/a".repeat(MAX_BYTES / 2 - 8) + "!";
    let start = std::time::Instant::now();
    for template in ["{+a}{+b}{+c}{+d}/x", "x{/a*}{/b*}{/c*}{/d*}/x", "{a}{b}{c}{d}{e}{f}{g}/x"] {
        assert_eq!(matched(template, &hostile), Value::Null);
    }
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    assert_eq!(matched("{+a}", &"x".repeat(MAX_BYTES + 1)), Value::Null);
}

/// The pattern of a long list of segments is no larger than that of one.
#[test]
fn many_path_variables_cost_little() {
    let names: Vec<_> = (0..1000).map(|n| format!("a{n}")).collect();
    let template = UriTemplate::parse(&format!("x:{{/{}}}", names.join(","))).expect("it fits");
    let uri = |segments: usize| format!("x:{}", "/v".repeat(segments));
    assert_eq!(template.matches(&uri(3)).expect("it fits").len(), 3);
    assert_eq!(template.matches(&uri(1000)).expect("it fits").len(), 1000);
    assert_eq!(template.matches(&uri(1001)), None);
    assert!(template.pattern.as_str().len() < 100);
    let nine = UriTemplate::parse("x:{/a,b,c,d,e,f,g,h,i}").expect("it fits");
    assert_eq!((nine.matches(&uri(9)).map(|v| v.len()), nine.matches(&uri(10))), (Some(9), None));
}

#[test]
fn what_cannot_fit_shows_at_the_beginning() {
    for (template, uri, may) in [
        ("a://{x}", "a://1", true),
        ("a://{x}", "b://1", false),
        ("a://é/{x}", "a://%C3%A9/1", true),
        ("a://%c3%a9/{x}", "a://%C3%A9/1", true),
        ("a://b/c", "a://b", false),
        ("{x}", "", true),
    ] {
        assert_eq!(UriTemplate::may_match(template, uri), may, "{template} {uri}");
        if let Some(values) = UriTemplate::parse(template).expect("it fits").matches(uri) {
            assert!(may, "{template} {uri} {values:?}");
        }
    }
}
