// What scripts of the original find: `mc`, `print`, and the few Java classes that are only used for their
// static helpers. The host hands in `host`, whose functions take and give plain values.
(function (host) {
  'use strict';
  const text = (value) => (value === null || value === undefined ? null : String(value));
  const json = (value) => {
    if (typeof value === 'string') return value;
    const written = JSON.stringify(value);
    return written === undefined ? 'null' : written;
  };
  const parsed = (written) => (written === null || written === undefined ? null : JSON.parse(written));
  // An XML payload: its text, and enough of a node's ways to be passed on.
  class XmlValue {
    constructor(written) { this.written = written; }
    toString() { return this.written; }
    toXMLString() { return this.written; }
    toXml() { return this.written; }
    getText() { return host.xmlText(this.written); }
  }
  const given = (property) => {
    if (property === null || property === undefined) return null;
    if (property.kind === 'json') return JSON.parse(property.value);
    if (property.kind === 'xml') return new XmlValue(property.value);
    return property.value;
  };
  const settable = (value) => {
    if (value === null || value === undefined) return ['null', ''];
    if (value instanceof XmlValue) return ['xml', value.written];
    if (typeof value === 'object') return ['json', json(value)];
    if (typeof value === 'boolean') return ['boolean', String(value)];
    if (typeof value === 'number') return [Number.isInteger(value) ? 'integer' : 'double', String(value)];
    return ['string', String(value)];
  };
  const state = { jsonText: null, jsonObject: null };
  const mc = {
    getPayloadJSON: () => parsed(host.payloadJson()),
    setPayloadJSON: (value) => host.setPayloadJson(json(value)),
    getPayloadText: () => host.payloadText(),
    getPayloadXML: () => new XmlValue(host.payloadXml()),
    setPayloadXML: (value) => host.setPayloadXml(String(value)),
    getEnvelope: () => new XmlValue(host.envelope()),
    getEnvelopeXML: () => new XmlValue(host.envelope()),
    getProperty: (name, scope) => given(host.property(text(scope) ?? 'default', String(name))),
    setProperty: (name, value, scope) => host.setProperty(text(scope) ?? 'default', String(name), ...settable(value)),
    removeProperty: (name, scope) => host.removeProperty(text(scope) ?? 'default', String(name)),
    getVariable: (name) => given(host.property('variable', String(name))),
    setVariable: (name, value) => host.setProperty('variable', String(name), ...settable(value)),
    removeVariable: (name) => host.removeProperty('variable', String(name)),
    addHeader: (mustUnderstand, content) => host.addHeader(Boolean(mustUnderstand), String(content)),
    // The text forms are kept on the context, as the original keeps them, apart from the payload.
    getJsonText: () => json(state.jsonText === null ? {} : state.jsonText),
    setJsonText: (context, written) => { state.jsonText = written === undefined ? context : written; },
    jsonObject: () => (state.jsonObject === null ? {} : state.jsonObject),
    setJsonObject: (context, value) => { state.jsonObject = value === undefined ? context : value; },
    getXpathResult: (expression) => host.xpath(String(expression)),
    isResponse: () => host.isResponse(),
    getMessageID: () => given(host.property('default', 'MessageID')),
    getServiceLog: () => log,
    getLog: () => log,
  };
  for (const name of ['To', 'From', 'ReplyTo', 'FaultTo', 'RelatesTo', 'MessageID']) {
    mc['get' + name] = mc['get' + name] ?? (() => given(host.property('default', name)));
    mc['set' + name] = (value) => host.setAddressing(name, text(value));
  }
  for (const [method, name] of [['SoapAction', 'Action'], ['SOAPAction', 'Action'], ['WSAAction', 'Action']]) {
    mc['get' + method] = () => given(host.property('default', name));
    mc['set' + method] = (value) => host.setAddressing(name, text(value));
  }
  const log = {};
  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) {
    log[level] = (message) => host.log(level, String(message));
  }
  const refuse = (what) => { throw new Error(what + ' is a Java class; scripts here run without Java'); };
  class JavaString extends String {
    equals(other) { return String(this) === String(other); }
    getBytes() { return refuse('java.lang.String.getBytes'); }
  }
  globalThis.java = {
    lang: {
      String: JavaString,
      System: { currentTimeMillis: () => Date.now(), out: { println: (line) => host.log('info', String(line)) } },
      Thread: { sleep: () => refuse('java.lang.Thread.sleep') },
      Math,
    },
    util: {
      UUID: { randomUUID: () => host.uuid() },
      Date: Date,
    },
  };
  globalThis.Packages = { java: globalThis.java };
  globalThis.importPackage = () => undefined;
  globalThis.importClass = () => undefined;
  globalThis.print = (line) => host.log('info', String(line));
  globalThis.println = globalThis.print;
  globalThis.load = () => refuse('load');
  return { mc, reset: () => { state.jsonText = null; state.jsonObject = null; } };
});
