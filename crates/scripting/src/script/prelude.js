// What scripts of Micro Integrator find: `mc`, `print`, and the few Java classes that are only used for their
// static helpers. The host hands in `host`, whose functions take and give plain values.
(function (host, xml) {
  'use strict';
  const text = (value) => (value === null || value === undefined ? null : String(value));
  const json = (value) => {
    if (typeof value === 'string') return value;
    const written = JSON.stringify(value);
    return written === undefined ? 'null' : written;
  };
  const parsed = (written) => (written === null || written === undefined ? null : JSON.parse(written));
  const given = (property) => {
    if (property === null || property === undefined) return null;
    if (property.kind === 'json') return JSON.parse(property.value);
    if (property.kind === 'xml') return xml.of(property.value);
    return property.value;
  };
  const settable = (value) => {
    if (value === null || value === undefined) return ['null', ''];
    if (xml.isXml(value)) return ['xml', xml.written(value)];
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
    // Engines without E4X give the element itself: what changes in it, changes the message.
    getPayloadXML: () => (xml.isE4X ? xml.of(host.payloadXml()) : xml.live(host.envelope()).getBody().getFirstElement()),
    setPayloadXML: (value) => host.setPayloadXml(xml.isXml(value) ? xml.written(value) : String(value)),
    getEnvelope: () => xml.live(host.envelope()),
    getEnvelopeXML: () => xml.of(host.envelope()),
    getProperty: (name, scope) => given(host.property(text(scope) ?? 'default', String(name))),
    setProperty: (name, value, scope) => host.setProperty(text(scope) ?? 'default', String(name), ...settable(value)),
    removeProperty: (name, scope) => host.removeProperty(text(scope) ?? 'default', String(name)),
    getVariable: (name) => given(host.property('variable', String(name))),
    setVariable: (name, value) => host.setProperty('variable', String(name), ...settable(value)),
    removeVariable: (name) => host.removeProperty('variable', String(name)),
    addHeader: (mustUnderstand, content) => {
      const envelope = xml.live(host.envelope());
      const prefix = envelope.name().replace(/:?[^:]*$/, '');
      const block = xml.isXml(content) ? content.copy() : XML(String(content));
      if (mustUnderstand) block['@' + prefix + ':mustUnderstand'] = '1';
      if (envelope.getHeader() === null) {
        const name = prefix === '' ? 'Header' : prefix + ':Header';
        envelope.prependChild(XML(`<${name} xmlns${prefix === '' ? '' : ':' + prefix}="${envelope.getNamespaceURI()}"/>`));
      }
      envelope.getHeader().appendChild(block);
    },
    // The text forms are kept on the context, as Micro Integrator keeps them, apart from the payload.
    getJsonText: () => json(state.jsonText === null ? {} : state.jsonText),
    setJsonText: (context, written) => { state.jsonText = written === undefined ? context : written; },
    jsonObject: () => (state.jsonObject === null ? {} : state.jsonObject),
    setJsonObject: (context, value) => { state.jsonObject = value === undefined ? context : value; },
    getXpathResult: (expression) => xml.path(expression),
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
      Thread: { sleep: (milliseconds) => host.sleep(Number(milliseconds)) },
      Math,
    },
    util: {
      UUID: { randomUUID: () => host.uuid() },
      Date: Date,
    },
  };
  globalThis.javax = { xml: { namespace: { QName } } };
  const axiom = { om: { OMAbstractFactory: { getOMFactory: xml.factory }, util: { AXIOMUtil: { stringToOM: xml.fromText } } } };
  globalThis.org = { apache: { axiom } };
  globalThis.Packages = { java: globalThis.java, javax: globalThis.javax, org: globalThis.org };
  // Engines of Java look a class up by its name.
  const classOf = (name) => name.split('.').reduce((found, part) => found?.[part], globalThis.Packages) ?? refuse(name);
  globalThis.Java = { type: (name) => classOf(String(name)), from: (list) => Array.from(list), to: (list) => list };
  globalThis.importPackage = () => undefined;
  globalThis.importClass = () => undefined;
  globalThis.print = (line) => host.log('info', String(line));
  globalThis.println = globalThis.print;
  globalThis.load = () => refuse('load');
  return { mc, reset: () => { state.jsonText = null; state.jsonObject = null; } };
});
