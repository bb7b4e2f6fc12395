//! The names of the functions, and how many arguments each takes.

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal..=$most:literal,)*) => {
        /// A function of the library.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Function { $($variant,)* }

        impl Function {
            pub fn parse(name: &str) -> Option<Function> {
                match name {
                    $($name => Some(Function::$variant),)*
                    // The documentation calls it so.
                    "secret" => Some(Function::Wso2Vault),
                    _ => None,
                }
            }

            pub fn names() -> impl Iterator<Item = &'static str> {
                [$($name,)*].into_iter()
            }

            /// Says what is wrong with the number of arguments.
            pub fn check_arguments(self, name: &str, count: usize) -> Result<(), String> {
                let (least, most) = match self { $(Function::$variant => ($least, $most),)* };
                match (least..=most).contains(&count) {
                    true => Ok(()),
                    false if least == most => Err(format!("`{name}` takes {least} arguments, not {count}")),
                    false => Err(format!("`{name}` takes {least} to {most} arguments, not {count}")),
                }
            }

            pub(super) fn name(self) -> &'static str {
                match self { $(Function::$variant => $name,)* }
            }
        }
    };
}

functions! {
    Length "length" 1..=1,
    ToUpper "toUpper" 1..=1,
    ToLower "toLower" 1..=1,
    SubString "subString" 2..=3,
    StartsWith "startsWith" 2..=2,
    EndsWith "endsWith" 2..=2,
    Contains "contains" 2..=2,
    Trim "trim" 1..=1,
    Replace "replace" 3..=3,
    Split "split" 2..=2,
    IndexOf "indexOf" 2..=3,
    CharAt "charAt" 2..=2,
    Now "now" 0..=0,
    FormatDateTime "formatDateTime" 2..=3,
    Abs "abs" 1..=1,
    Ceil "ceil" 1..=1,
    Floor "floor" 1..=1,
    Round "round" 1..=2,
    Sqrt "sqrt" 1..=1,
    Log "log" 1..=2,
    Pow "pow" 2..=2,
    Base64Encode "base64encode" 1..=2,
    Base64Decode "base64decode" 1..=1,
    UrlEncode "urlEncode" 1..=2,
    UrlDecode "urlDecode" 1..=1,
    IsString "isString" 1..=1,
    IsNumber "isNumber" 1..=1,
    IsArray "isArray" 1..=1,
    IsObject "isObject" 1..=1,
    ToText "string" 1..=1,
    Integer "integer" 1..=1,
    Float "float" 1..=1,
    Boolean "boolean" 1..=1,
    Object "object" 1..=1,
    Array "array" 1..=1,
    Exists "exists" 1..=1,
    Not "not" 1..=1,
    XPath "xpath" 1..=2,
    Registry "registry" 1..=2,
    Wso2Vault "wso2-vault" 1..=1,
    HashiCorpVault "hashicorp-vault" 2..=3,
}
