// XML as scripts of Micro Integrator see it: E4X of old engines (paths, lists, attributes, changes), and the ways of
// the Java tree that scripts call (`getText`, `getFirstElement`, `detach`). The translation of literals and of
// operators that are no JavaScript ends in `__xml`, `__descendants` and `__children`.
(function (host, plainText, makeTree) {
  'use strict';
  const BRAND = Symbol('xml');
  const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
  const ESCAPES = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };
  const decoded = (written) => !written.includes('&') ? written : written.replace(/&(#x[0-9a-fA-F]+|#[0-9]+|\w+);/g, (all, name) => {
    if (name[0] !== '#') return ENTITIES[name] ?? all;
    return String.fromCodePoint(name[1] === 'x' ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10));
  });
  const escaped = (text) => text.replace(/[<>&"]/g, (letter) => ESCAPES[letter]);
  const localOf = (name) => name.slice(name.indexOf(':') + 1);
  const prefixOf = (name) => (name.includes(':') ? name.slice(0, name.indexOf(':')) : '');

  const TOKEN = /<!\[CDATA\[([\s\S]*?)\]\]>|(<!--[\s\S]*?-->|<\?[\s\S]*?\?>)|<\/([^\s>]+)\s*>|<([^\s\/>!?]+)((?:\s+[^\s=>\/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)/y;
  const ATTRIBUTE = /([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
  // The nodes of a text; white space between elements is layout.
  const parse = (written, keepSpace) => {
    const top = { kind: 'element', name: '', attributes: [], children: [], parent: null };
    let open = top;
    const add = (node) => { node.parent = open; open.children.push(node); };
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < written.length) {
      const token = TOKEN.exec(written);
      if (token === null) throw new Error('the XML is not well-formed');
      if (token[4] !== undefined) {
        const attributes = token[5] === '' ? [] : [...token[5].matchAll(ATTRIBUTE)].map((found) => [found[1], decoded(found[2] ?? found[3])]);
        const node = { kind: 'element', name: token[4], attributes, children: [] };
        add(node);
        if (token[6] === '') open = node;
      } else if (token[3] !== undefined) {
        if (open.name !== token[3] || open === top) throw new Error('the XML is not well-formed: </' + token[3] + '> closes nothing');
        open = open.parent;
      } else if (token[7] !== undefined) {
        if (keepSpace || token[7].trim() !== '') add({ kind: 'text', value: decoded(token[7]) });
      } else if (token[1] !== undefined) {
        add({ kind: 'text', value: token[1] });
      } else if (!token[2].startsWith('<?xml ')) {
        add({ kind: 'other', written: token[2] });
      }
    }
    if (open !== top) throw new Error('the XML is not well-formed: <' + open.name + '> is not closed');
    for (const node of top.children) node.parent = null;
    return top.children;
  };
  const uriOf = (node, prefix) => {
    const wanted = prefix === '' ? 'xmlns' : 'xmlns:' + prefix;
    for (let at = node; at; at = at.parent) {
      const found = (at.attributes ?? []).find(([name]) => name === wanted);
      if (found) return found[1];
    }
    return '';
  };
  const prefixesIn = (node, into) => {
    if (node.kind !== 'element') return into;
    into.add(prefixOf(node.name));
    for (const [name, value] of node.attributes) {
      if (name.includes(':')) into.add(prefixOf(name));
      // A name may stand in a value, too: `xsi:type="q:order"`.
      if (/^[\w.-]+:[^\s:/]/.test(value)) into.add(prefixOf(value));
    }
    for (const child of node.children) prefixesIn(child, into);
    return into;
  };
  const writtenInside = (node, more) => {
    if (node.kind === 'text') return escaped(node.value);
    if (node.kind === 'other') return node.written;
    if (node.kind === 'attribute') return escaped(node.value);
    const attributes = more.concat(node.attributes).map(([name, value]) => ` ${name}="${escaped(value)}"`).join('');
    const inside = node.children.map((child) => writtenInside(child, [])).join('');
    return inside === '' ? `<${node.name}${attributes}/>` : `<${node.name}${attributes}>${inside}</${node.name}>`;
  };
  // A node on its own takes the namespaces along that its ancestors declare.
  const writtenAlone = (node) => {
    const more = [];
    if (node.parent && node.kind === 'element') {
      for (const prefix of prefixesIn(node, new Set())) {
        const name = prefix === '' ? 'xmlns' : 'xmlns:' + prefix;
        const uri = uriOf(node.parent, prefix);
        if (uri !== '' && !node.attributes.some(([own]) => own === name)) more.push([name, uri]);
      }
    }
    return writtenInside(node, more);
  };
  const textOf = (node) => {
    if (node.kind === 'text' || node.kind === 'attribute') return node.value;
    return node.kind === 'element' ? node.children.map(textOf).join('') : '';
  };
  const isSimple = (node) => node.kind !== 'element' || !node.children.some((child) => child.kind === 'element');
  // A tree that is the message itself tells the message when it changes.
  const changed = (node) => {
    let top = node;
    while (top.parent) top = top.parent;
    if (top.live) host.setEnvelope(writtenInside(top, []));
  };
  const detached = (node) => {
    const parent = node.parent;
    if (!parent) return;
    if (node.kind === 'attribute') parent.attributes = parent.attributes.filter(([name]) => name !== node.name);
    else parent.children = parent.children.filter((child) => child !== node);
    changed(parent);
    node.parent = null;
  };
  const nodesFrom = (value) => {
    const list = value === null || value === undefined ? null : value[BRAND];
    if (list) return list.nodes.flatMap((node) => (node.kind === 'element' ? parse(writtenAlone(node), true) : [{ kind: 'text', value: textOf(node) }]));
    return [{ kind: 'text', value: value === null || value === undefined ? '' : String(value) }];
  };
  const putChildren = (parent, nodes) => {
    parent.children = nodes;
    for (const node of nodes) node.parent = parent;
    changed(parent);
  };

  class Xml {
    constructor(nodes, written, origin) { this.known = nodes; this.written = written; this.origin = origin; }
    get nodes() { return (this.known ??= parse(this.written, true)); }
  }
  const namespaceFits = (uri, wanted) => (wanted === '*' ? true : uri === (wanted === undefined ? '' : String(wanted)));
  const elementFits = (node, name, namespace) => node.kind === 'element'
    && (name === '*' || (localOf(node.name) === name && namespaceFits(uriOf(node, prefixOf(node.name)), namespace)));
  const attributesOf = (node, name, namespace) => (node.attributes ?? [])
    .filter(([own]) => own !== 'xmlns' && !own.startsWith('xmlns:') && (name === '*' || localOf(own) === name)
      && (name === '*' || namespaceFits(own.includes(':') ? uriOf(node, prefixOf(own)) : '', namespace)))
    .map(([own, value]) => ({ kind: 'attribute', name: own, value, parent: node }));
  const children = (list, name, namespace) => {
    if (name[0] === '@') return wrap(list.nodes.flatMap((node) => attributesOf(node, name.slice(1), namespace)));
    const fits = (child) => (name === '*' ? true : elementFits(child, name, namespace));
    return wrap(list.nodes.flatMap((node) => (node.children ?? []).filter(fits)), undefined, { list, name });
  };
  const below = (node, visit) => { for (const child of node.children ?? []) { visit(child); below(child, visit); } };
  const descendants = (list, name, namespace) => {
    const found = [];
    for (const node of list.nodes) {
      if (name[0] === '@') {
        found.push(...attributesOf(node, name.slice(1), namespace));
        below(node, (child) => found.push(...attributesOf(child, name.slice(1), namespace)));
      } else {
        below(node, (child) => { if (elementFits(child, name, namespace)) found.push(child); });
      }
    }
    return wrap(found);
  };
  const text = (list) => {
    if (list.nodes.every(isSimple)) return list.nodes.map(textOf).join('');
    return list.nodes.map(writtenAlone).join('\n');
  };
  const written = (list) => (list.known ? list.nodes.map(writtenAlone).join('\n') : list.written);
  const inJava = (list) => (list.nodes.length === 0 ? null : wrap([list.nodes[0]]));
  const javaList = (nodes) => {
    const made = nodes.map((node) => (node === null || typeof node !== 'object' ? node : wrap([node])));
    made.get = (index) => made[index];
    made.size = () => made.length;
    made.isEmpty = () => made.length === 0;
    made.item = (index) => made[index] ?? null;
    made.getLength = () => made.length;
    made.iterator = () => iterator(made);
    return made;
  };
  const iterator = (values) => {
    let next = 0;
    return { hasNext: () => next < values.length, next: () => values[next++] };
  };
  const elementsOf = (list) => list.nodes.flatMap((node) => (node.children ?? []).filter((child) => child.kind === 'element'));
  const soapPart = (list, name) => inJava({ nodes: elementsOf(list).filter((node) => localOf(node.name) === name) });
  const one = (list) => list.nodes[0] ?? (() => { throw new Error('there is no element'); })();
  const named = (name) => (typeof name === 'string' ? [name, '*'] : [name.localPart, name.uri]);

  const METHODS = {
    __descendants: descendants,
    __children: children,
    __filter: (list, test) => wrap(list.nodes.filter((node) => test.call(wrap([node])))),
    length: (list) => list.nodes.length,
    toString: (list) => (plainText ? text(list) : written(list)),
    toXMLString: written,
    toXml: written,
    valueOf: (list) => wrap(list.nodes),
    text: (list) => wrap(list.nodes.flatMap((node) => (node.children ?? []).filter((child) => child.kind === 'text'))),
    children: (list) => children(list, '*'),
    elements: (list, name) => wrap(name === undefined ? elementsOf(list) : elementsOf(list).filter((node) => elementFits(node, ...named(name)))),
    child: (list, name) => (/^\d+$/.test(String(name)) ? wrap([list.nodes[0]?.children?.[name]].filter(Boolean)) : children(list, ...named(name))),
    descendants: (list, name) => descendants(list, ...named(name ?? '*')),
    attribute: (list, name) => children(list, '@' + named(name)[0], named(name)[1]),
    attributes: (list) => children(list, '@*'),
    name: (list) => one(list).name,
    localName: (list) => localOf(one(list).name),
    namespace: (list) => uriOf(one(list), prefixOf(one(list).name)),
    parent: (list) => (list.nodes[0]?.parent ? wrap([list.nodes[0].parent]) : null),
    copy: (list) => wrap(nodesFrom(wrap(list.nodes))),
    contains: (list, value) => list.nodes.some((node) => textOf(node) === String(value)),
    childIndex: (list) => one(list).parent?.children.indexOf(one(list)) ?? -1,
    nodeKind: (list) => one(list).kind,
    hasSimpleContent: (list) => list.nodes.every(isSimple),
    hasComplexContent: (list) => !list.nodes.every(isSimple),
    normalize: (list) => wrap(list.nodes),
    appendChild: (list, value) => {
      // DOM moves what is appended; E4X copies what stands elsewhere.
      const moves = isXml(value) && (!plainText || value[BRAND].nodes.every((node) => !node.parent && !node.live));
      const nodes = moves ? tree.taken(value) : nodesFrom(value);
      tree.put(one(list), one(list).children.length, nodes);
      return moves && !plainText ? value : wrap(list.nodes);
    },
    prependChild: (list, value) => { putChildren(one(list), nodesFrom(value).concat(one(list).children)); return wrap(list.nodes); },
    setChildren: (list, value) => { putChildren(one(list), nodesFrom(value)); return wrap(list.nodes); },
    setName: (list, name) => { one(list).name = String(name); changed(one(list)); },
    setLocalName: (list, name) => {
      const prefix = prefixOf(one(list).name);
      one(list).name = prefix === '' ? String(name) : prefix + ':' + name;
      changed(one(list));
    },
    getText: (list) => list.nodes.map(textOf).join(''),
    getAttributeValue: (list, name) => name === undefined ? one(list).value : text(children(list, '@' + named(name)[0], named(name)[1])[BRAND]) || null,
    setText: (list, value) => putChildren(one(list), [{ kind: 'text', value: String(value) }]),
    getLocalName: (list) => localOf(one(list).name),
    getNamespaceURI: (list) => uriOf(one(list), prefixOf(one(list).name)),
    getParent: (list) => (list.nodes[0]?.parent ? wrap([list.nodes[0].parent]) : null),
    getFirstElement: (list) => inJava({ nodes: elementsOf(list) }),
    getChildElements: (list) => iterator(javaList(elementsOf(list))),
    getChildren: (list) => iterator(javaList(list.nodes.flatMap((node) => node.children ?? []))),
    getFirstChildWithName: (list, name) => inJava({ nodes: elementsOf(list).filter((node) => elementFits(node, ...named(name))) }),
    getChildrenWithName: (list, name) => iterator(javaList(elementsOf(list).filter((node) => elementFits(node, ...named(name))))),
    getChildrenWithLocalName: (list, name) => iterator(javaList(elementsOf(list).filter((node) => elementFits(node, String(name), '*')))),
    detach: (list) => { for (const node of list.nodes) detached(node); return wrap(list.nodes); },
    discard: (list) => { for (const node of list.nodes) detached(node); },
    getBody: (list) => soapPart(list, 'Body'),
    getHeader: (list) => soapPart(list, 'Header'),
    build: () => undefined,
    buildWithAttachments: () => undefined,
  };
  const tree = makeTree({
    wrap: (nodes) => wrap(nodes), isXml: (value) => isXml(value), nodesOf: (value) => (value[BRAND] ?? value).nodes,
    javaList, iterator, changed, detached, uriOf, prefixOf, localOf, prefixesIn, textOf, below, parse, writtenAlone,
  });
  Object.assign(METHODS, tree.methods);
  // Java reads `element.localName` as `element.getLocalName()`.
  const getter = (key) => (plainText || key === '' ? undefined : METHODS['get' + key[0].toUpperCase() + key.slice(1)]);

  // `list[list.length()] = value`: one more element behind those of the list.
  const append = (list, value) => {
    const { list: owner, name } = list.origin ?? {};
    const parent = list.nodes[0]?.parent ?? owner?.nodes[0];
    const nodes = isXml(value) ? nodesFrom(value) : [{ kind: 'element', name: name ?? 'item', attributes: [], children: nodesFrom(value) }];
    for (const node of nodes) for (const child of node.children ?? []) child.parent = node;
    if (parent) {
      const last = list.nodes.at(-1);
      const at = last?.parent === parent ? parent.children.indexOf(last) + 1 : parent.children.length;
      tree.put(parent, at, nodes);
    }
    list.nodes.push(...nodes);
  };
  const assign = (list, key, value) => {
    const node = list.nodes[/^\d+$/.test(key) ? Number(key) : 0];
    if (!node && /^\d+$/.test(key)) return append(list, value);
    if (!node) throw new Error('there is no element to write `' + key + '` into');
    const setter = plainText ? undefined : METHODS['set' + key[0].toUpperCase() + key.slice(1)];
    if (setter && key[0] !== '@') return setter(list, value);
    if (/^\d+$/.test(key)) {
      if (!isXml(value) || !node.parent) return putChildren(node, nodesFrom(value));
      const siblings = node.parent.children;
      return putChildren(node.parent, siblings.flatMap((child) => (child === node ? nodesFrom(value) : [child])));
    }
    if (key[0] === '@') {
      const others = node.attributes.filter(([name]) => name !== key.slice(1));
      node.attributes = others.concat([[key.slice(1), String(value)]]);
      return changed(node);
    }
    const old = node.children.filter((child) => elementFits(child, key));
    if (old.length === 0) {
      const made = isXml(value) ? nodesFrom(value) : [{ kind: 'element', name: key, attributes: [], children: nodesFrom(value) }];
      for (const child of made[0].children ?? []) child.parent = made[0];
      return putChildren(node, node.children.concat(made));
    }
    if (!isXml(value)) return putChildren(old[0], nodesFrom(value));
    return putChildren(node, node.children.flatMap((child) => (child === old[0] ? nodesFrom(value) : old.includes(child) ? [] : [child])));
  };
  const read = (list, key) => {
    if (key === BRAND) return list;
    if (key === Symbol.iterator) return () => list.nodes.map((node) => wrap([node]))[Symbol.iterator]();
    if (key === Symbol.toPrimitive) return () => METHODS.toString(list);
    if (typeof key === 'symbol') return undefined;
    if (/^\d+$/.test(key)) return list.nodes[key] ? wrap([list.nodes[key]]) : undefined;
    if (getter(key) && children(list, key)[BRAND].nodes.length === 0) return getter(key)(list);
    if (!Object.hasOwn(METHODS, key)) return children(list, key);
    const method = (...given) => METHODS[key](list, ...given);
    // An element may be called what a method is called: the name alone is the element, the call is the method.
    const same = key.startsWith('__') || key.startsWith('to') ? null : children(list, key);
    if (same === null || same[BRAND].nodes.length === 0) return method;
    return new Proxy(method, { apply: (_, __, given) => method(...given), get: (_, inner) => same[inner] });
  };
  const HANDLER = {
    get: (list, key) => read(list, key),
    set: (list, key, value) => { assign(list, key, value); return true; },
    has: (list, key) => key === BRAND || (typeof key === 'string'
      && (Object.hasOwn(METHODS, key) || children(list, key)[BRAND].nodes.length > 0)),
    deleteProperty: (list, key) => {
      const gone = /^\d+$/.test(key) ? [list.nodes[key]].filter(Boolean) : children(list, key)[BRAND].nodes;
      for (const node of gone) detached(node);
      if (/^\d+$/.test(key)) list.nodes.splice(Number(key), 1);
      return true;
    },
  };
  const wrap = (nodes, written, origin) => new Proxy(new Xml(nodes, written, origin), HANDLER);
  const isXml = (value) => value !== null && (typeof value === 'object' || typeof value === 'function') && value[BRAND] instanceof Xml;

  // What a literal becomes: texts, with a kind and a value between each two.
  globalThis.__xml = (pieces) => {
    let whole = pieces[0];
    for (let at = 1; at + 2 < pieces.length; at += 3) {
      const [kind, value, text] = pieces.slice(at, at + 3);
      if (kind === 'attribute') whole += '"' + escaped(String(value)) + '"';
      else if (kind === 'name') whole += String(value);
      else if (isXml(value)) whole += written(value[BRAND]);
      else whole += value === null || value === undefined ? '' : escaped(String(value));
      whole += text;
    }
    return wrap(parse(whole.startsWith('<>') ? whole.slice(2, -3) : whole, false));
  };
  // `a + b`, and `a += b`, of XML are a list of both.
  globalThis.__add = (left, right) => (isXml(left) && isXml(right) ? wrap(left[BRAND].nodes.concat(right[BRAND].nodes)) : left + right);
  const made = (value) => (isXml(value) ? METHODS.copy(value[BRAND]) : wrap(parse(String(value ?? ''), false)));
  globalThis.XML = function (value) { return made(value); };
  globalThis.XMLList = function (value) { return made(value); };
  globalThis.Namespace = function (prefix, uri) { return new String(uri === undefined ? prefix : uri); };
  globalThis.QName = function (uri, local, prefix) { return local === undefined ? { ...tree.qname('', String(uri)), uri: '*' } : tree.qname(String(uri ?? ''), prefix ? prefix + ':' + local : String(local)); };

  return {
    isXml,
    isE4X: plainText,
    written: (value) => written(value[BRAND]),
    of: (text) => wrap(undefined, text),
    factory: () => tree.factory(null),
    fromText: (text) => wrap(parse(String(text), true).filter((node) => node.kind === 'element')),
    // The message itself: what changes in it, changes the message.
    live: (text) => {
      const nodes = parse(text, true).filter((node) => node.kind === 'element');
      nodes[0].live = true;
      return wrap(nodes);
    },
    // What Micro Integrator's path objects offer.
    path: (expression) => {
      const select = (context) => {
        const found = host.xpath(String(expression), isXml(context) ? written(context[BRAND]) : String(context));
        return javaList(found.map(([kind, value]) => {
          if (kind === 'element') return parse(value, true)[0];
          return kind === 'value' ? value : { kind: 'text', value };
        }));
      };
      const plain = (value) => (value === undefined ? '' : isXml(value) ? METHODS.getText(value[BRAND]) : String(value));
      return {
        selectNodes: select,
        evaluate: select,
        selectSingleNode: (context) => select(context)[0] ?? null,
        stringValueOf: (context) => plain(select(context)[0]),
        booleanValueOf: (context) => { const found = select(context); return found.length > 0 && found[0] !== 'false'; },
        numberValueOf: (context) => Number(plain(select(context)[0])),
        toString: () => String(expression),
      };
    },
  };
});
