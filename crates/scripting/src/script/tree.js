// The functions of the two Java trees that scripts call on XML: DOM (`getElementsByTagName`, `setAttribute`) and the
// object model of Axis2 (`getFirstOMChild`, `addAttribute`). Nodes that are put somewhere move there, with the namespaces
// they use. `core` is what `xml.js` lends.
(function (core) {
  'use strict';
  const { wrap, isXml, nodesOf, javaList, iterator, changed, detached, uriOf, prefixOf, localOf, prefixesIn, textOf, below, parse } = core;
  const one = (list) => nodesOf(list)[0] ?? (() => { throw new Error('there is no element'); })();
  const given = (node) => (node ? wrap([node]) : null);
  const isElement = (node) => node.kind === 'element';
  const declared = (name) => name === 'xmlns' || name.startsWith('xmlns:');
  const element = (name, attributes) => ({ kind: 'element', name, attributes: attributes ?? [], children: [], parent: null });
  const textNode = (value) => ({ kind: 'text', value: String(value), parent: null });
  const siblings = (node) => node.parent?.children ?? [];
  const beside = (node, step) => siblings(node)[siblings(node).indexOf(node) + step];
  const top = (node) => { let at = node; while (at.parent) at = at.parent; return at; };

  const declare = (node, prefix, uri) => {
    const name = prefix === '' ? 'xmlns' : 'xmlns:' + prefix;
    node.attributes = node.attributes.filter(([own]) => own !== name).concat([[name, uri]]);
  };
  // The nodes of a value, free to be put somewhere, with the namespaces that they had from their ancestors.
  const taken = (value) => {
    if (!isXml(value)) return [textNode(value ?? '')];
    return nodesOf(value).map((node) => {
      if (node.kind === 'attribute') return textNode(node.value);
      const above = node.parent;
      if (isElement(node) && above) {
        for (const prefix of prefixesIn(node, new Set())) {
          const uri = uriOf(node, prefix);
          const name = prefix === '' ? 'xmlns' : 'xmlns:' + prefix;
          if (uri !== '' && !node.attributes.some(([own]) => own === name)) declare(node, prefix, uri);
        }
      }
      if (above) detached(node);
      return node;
    });
  };
  const put = (parent, at, nodes) => {
    parent.children.splice(at, 0, ...nodes);
    for (const node of nodes) node.parent = parent;
    changed(parent);
  };
  const partOf = (parent, value) => {
    const at = parent.children.indexOf(nodesOf(value)[0]);
    if (at < 0) throw new Error('the node is no child of <' + parent.name + '>');
    return at;
  };
  const qname = (uri, name) => {
    const [prefix, local] = [prefixOf(name), localOf(name)];
    return {
      localPart: local, uri, prefix,
      getLocalPart: () => local, getNamespaceURI: () => uri, getPrefix: () => prefix,
      equals: (other) => String(other) === (uri === '' ? local : `{${uri}}${local}`),
      toString: () => (uri === '' ? local : `{${uri}}${local}`),
    };
  };
  const namespace = (uri, prefix) => ({
    uri, prefix, getNamespaceURI: () => uri, getName: () => uri, getPrefix: () => prefix, toString: () => uri,
  });
  const uriIn = (value) => (value === null || value === undefined ? '' : String(value.uri ?? value));
  const prefixIn = (value) => String(value?.prefix ?? '');
  // A name with the prefix of a namespace, which is declared at the node unless it is in force there.
  const qualified = (node, local, space) => {
    const [uri, prefix] = [uriIn(space), prefixIn(space)];
    if (uri !== '' && uriOf(node, prefix) !== uri) declare(node, prefix, uri);
    return prefix === '' ? String(local) : prefix + ':' + local;
  };
  const uriOfAttribute = (node, name) => (name.includes(':') ? uriOf(node, prefixOf(name)) : '');
  const attributeNode = (node, entry) => (entry ? wrap([{ kind: 'attribute', name: entry[0], value: entry[1], parent: node }]) : null);
  const ownAttributes = (node) => (node.attributes ?? []).filter(([name]) => !declared(name));
  // By the name as it is written, or by a qualified one.
  const entryOf = (node, name) => ownAttributes(node).find(([own]) => (typeof name === 'object' && name !== null && name.localPart !== undefined
    ? localOf(own) === name.localPart && (name.uri === '*' || uriOfAttribute(node, own) === String(name.uri))
    : own === String(name)));
  const setAttribute = (node, name, value) => {
    const old = node.attributes.find(([own]) => own === name);
    if (old) old[1] = String(value);
    else node.attributes.push([name, String(value)]);
    changed(node);
  };
  const removeAttribute = (node, fits) => {
    node.attributes = node.attributes.filter((entry) => !fits(entry));
    changed(node);
  };
  const elementsBelow = (list, fits, withSelf) => {
    const found = [];
    for (const node of nodesOf(list)) {
      if (withSelf && isElement(node) && fits(node)) found.push(node);
      below(node, (child) => { if (isElement(child) && fits(child)) found.push(child); });
    }
    return found;
  };

  const factory = (owner) => ({
    createElement: (name) => wrap([element(String(name))]),
    createElementNS: (uri, name) => {
      const made = element(String(name));
      if (uri) declare(made, prefixOf(made.name), String(uri));
      return wrap([made]);
    },
    createTextNode: (text) => wrap([textNode(text)]),
    createOMNamespace: (uri, prefix) => namespace(String(uri), String(prefix ?? '')),
    createOMText: (first, second) => {
      const made = textNode(second === undefined ? first : second);
      if (second !== undefined && isXml(first)) put(one(first), one(first).children.length, [made]);
      return wrap([made]);
    },
    createOMAttribute: (name, space, value) => ({ name: String(name), space, value: String(value) }),
    createOMElement: (name, space, prefix, parent) => {
      const isQualified = typeof name === 'object' && name.localPart !== undefined;
      const made = element('');
      const within = isXml(space) ? space : isXml(prefix) ? prefix : parent;
      if (isQualified) made.name = qualified(made, name.localPart, { uri: name.uri === '*' ? '' : name.uri, prefix: name.prefix ?? '' });
      else if (typeof space === 'string') made.name = qualified(made, name, { uri: space, prefix: prefix ?? '' });
      else made.name = qualified(made, name, isXml(space) ? null : space);
      if (isXml(within)) put(one(within), one(within).children.length, [made]);
      return wrap([made]);
    },
    getDocumentElement: () => (owner ? given(top(owner)) : null),
    getOMDocumentElement: () => (owner ? given(top(owner)) : null),
  });

  const methods = {
    // DOM
    getTagName: (list) => one(list).name,
    getNodeName: (list) => (one(list).kind === 'text' ? '#text' : one(list).name),
    getNodeType: (list) => ({ element: 1, attribute: 2, text: 3 })[one(list).kind] ?? 8,
    getNodeValue: (list) => (isElement(one(list)) ? null : textOf(one(list))),
    setNodeValue: (list, value) => { one(list).value = String(value); changed(one(list)); },
    getTextContent: (list) => nodesOf(list).map(textOf).join(''),
    setTextContent: (list, value) => { const node = one(list); node.children = []; put(node, 0, [textNode(value)]); },
    getChildNodes: (list) => javaList(one(list).children ?? []),
    getFirstChild: (list) => given(one(list).children?.[0]),
    getLastChild: (list) => given((one(list).children ?? []).at(-1)),
    getNextSibling: (list) => given(beside(one(list), 1)),
    getPreviousSibling: (list) => (siblings(one(list)).indexOf(one(list)) > 0 ? given(beside(one(list), -1)) : null),
    getParentNode: (list) => given(one(list).parent),
    getOwnerDocument: (list) => factory(one(list)),
    getDocumentElement: (list) => given(top(one(list))),
    getElementsByTagName: (list, name) => javaList(elementsBelow(list, (node) => name === '*' || node.name === String(name), false)),
    getElementsByTagNameNS: (list, uri, local) => javaList(elementsBelow(list, (node) => (uri === '*' || uriOf(node, prefixOf(node.name)) === String(uri ?? ''))
      && (local === '*' || localOf(node.name) === String(local)), false)),
    hasChildNodes: (list) => (one(list).children ?? []).length > 0,
    hasAttributes: (list) => ownAttributes(one(list)).length > 0,
    hasAttribute: (list, name) => entryOf(one(list), name) !== undefined,
    hasAttributeNS: (list, uri, local) => entryOf(one(list), { uri: uri ?? '', localPart: String(local) }) !== undefined,
    // DOM asks by a text and gets a text; the object model asks by a qualified name and gets the attribute.
    getAttribute: (list, name) => (typeof name === 'string' ? entryOf(one(list), name)?.[1] ?? '' : attributeNode(one(list), entryOf(one(list), name))),
    getAttributeNS: (list, uri, local) => entryOf(one(list), { uri: uri ?? '', localPart: String(local) })?.[1] ?? '',
    getAttributeNode: (list, name) => attributeNode(one(list), entryOf(one(list), name)),
    getAttributes: (list) => {
      const node = one(list);
      const all = javaList(ownAttributes(node).map(([name, value]) => ({ kind: 'attribute', name, value, parent: node })));
      all.getNamedItem = (name) => attributeNode(node, entryOf(node, name));
      return all;
    },
    setAttribute: (list, name, value) => setAttribute(one(list), String(name), value),
    setAttributeNS: (list, uri, name, value) => {
      const node = one(list);
      if (uri) qualified(node, localOf(String(name)), { uri, prefix: prefixOf(String(name)) });
      setAttribute(node, String(name), value);
    },
    removeChild: (list, value) => { partOf(one(list), value); detached(nodesOf(value)[0]); return value; },
    replaceChild: (list, value, old) => {
      const parent = one(list);
      const nodes = taken(value);
      const at = partOf(parent, old);
      detached(nodesOf(old)[0]);
      put(parent, at, nodes);
      return old;
    },
    insertBefore: (list, value, before) => {
      const parent = one(list);
      const nodes = taken(value);
      put(parent, isXml(before) ? partOf(parent, before) : parent.children.length, nodes);
      return value;
    },
    cloneNode: (list, deep) => {
      const made = parse(core.writtenAlone(one(list)), true)[0] ?? textNode(textOf(one(list)));
      if (deep === false) made.children = [];
      return wrap([made]);
    },

    // Object model
    getQName: (list) => {
      const node = one(list);
      return qname(node.kind === 'attribute' ? uriOfAttribute(node.parent, node.name) : uriOf(node, prefixOf(node.name)), node.name);
    },
    getPrefix: (list) => prefixOf(one(list).name),
    getNamespace: (list) => {
      const uri = uriOf(one(list), prefixOf(one(list).name));
      return uri === '' ? null : namespace(uri, prefixOf(one(list).name));
    },
    setNamespace: (list, space) => {
      const node = one(list);
      node.name = qualified(node, localOf(node.name), space);
      changed(node);
    },
    declareNamespace: (list, first, prefix) => {
      const space = namespace(uriIn(first), prefix === undefined ? prefixIn(first) : String(prefix));
      declare(one(list), space.prefix, space.uri);
      changed(one(list));
      return space;
    },
    declareDefaultNamespace: (list, uri) => { declare(one(list), '', String(uri)); changed(one(list)); return namespace(String(uri), ''); },
    getDefaultNamespace: (list) => { const uri = uriOf(one(list), ''); return uri === '' ? null : namespace(uri, ''); },
    findNamespace: (list, uri, prefix) => {
      for (let at = one(list); at; at = at.parent) {
        for (const [name, value] of (at.attributes ?? []).filter(([own]) => declared(own))) {
          const own = name === 'xmlns' ? '' : name.slice(6);
          if ((!uri || value === String(uri)) && (prefix === null || prefix === undefined || own === String(prefix))) return namespace(value, own);
        }
      }
      return null;
    },
    findNamespaceURI: (list, prefix) => { const uri = uriOf(one(list), String(prefix)); return uri === '' ? null : namespace(uri, String(prefix)); },
    getAllDeclaredNamespaces: (list) => iterator(one(list).attributes.filter(([name]) => declared(name))
      .map(([name, uri]) => namespace(uri, name === 'xmlns' ? '' : name.slice(6)))),
    getAllAttributes: (list) => { const node = one(list); return iterator(ownAttributes(node).map((entry) => attributeNode(node, entry))); },
    setAttributeValue: (list, value) => { const node = one(list); node.value = String(value); setAttribute(node.parent, node.name, value); },
    addAttribute: (list, name, value, space) => {
      const node = one(list);
      const made = isXml(name) ? { name: localOf(one(name).name), value: one(name).value, space: methods.getQName(name) } : name;
      if (typeof made === 'object') setAttribute(node, qualified(node, made.name, made.space), made.value);
      else setAttribute(node, qualified(node, made, space), value);
    },
    // DOM removes by name, the object model an attribute.
    removeAttribute: (list, name) => {
      const wanted = isXml(name) ? one(name).name : String(name);
      removeAttribute(one(list), ([own]) => own === wanted);
    },
    removeAttributeNS: (list, uri, local) => {
      const entry = entryOf(one(list), { uri: uri ?? '', localPart: String(local) });
      removeAttribute(one(list), (own) => own === entry);
    },
    getFirstOMChild: (list) => methods.getFirstChild(list),
    getNextOMSibling: (list) => methods.getNextSibling(list),
    getPreviousOMSibling: (list) => methods.getPreviousSibling(list),
    getChildrenWithNamespaceURI: (list, uri) => iterator(javaList((one(list).children ?? []).filter((child) => isElement(child)
      && uriOf(child, prefixOf(child.name)) === String(uri)))),
    getDescendants: (list, withSelf) => iterator(javaList(elementsBelow(list, () => true, withSelf))),
    addChild: (list, value) => { const nodes = taken(value); put(one(list), one(list).children.length, nodes); },
    insertSiblingAfter: (list, value) => { const nodes = taken(value); const node = one(list); put(node.parent, siblings(node).indexOf(node) + 1, nodes); },
    insertSiblingBefore: (list, value) => { const nodes = taken(value); const node = one(list); put(node.parent, siblings(node).indexOf(node), nodes); },
    cloneOMElement: (list) => methods.cloneNode(list, true),
    getType: (list) => methods.getNodeType(list),
    getTextAsQName: (list) => qname(uriOf(one(list), prefixOf(textOf(one(list)).trim())), textOf(one(list)).trim()),
    toStringWithConsume: (list) => nodesOf(list).map(core.writtenAlone).join(''),
    getOMFactory: (list) => factory(one(list)),
    getOMDocument: (list) => factory(one(list)),
    hasFault: (list) => elementsBelow(list, (node) => localOf(node.name) === 'Fault' && localOf(node.parent?.name ?? '') === 'Body', false).length > 0,
  };
  return { methods, factory, qname, taken, put };
});
