<#macro each of sep=","><#list of as o><#nested o, o?counter>${sep}</#list></#macro>
<@each of=payload.items?map(i -> i.a) ; x, n>${n}:${x}</@each>
<#function twice x><#return x * 2></#function>${twice(4) % 3}
<#switch payload.t><#case "text">a<#break><#default>b</#switch><#attempt>${nope}<#recover>r</#attempt>
<#list payload.h as k, v>${k}=${v?string("y", "n")}</#list>${xml.r.a[0].@b?number + 1} ${xml.r.a?size}<#escape x as x?xml>${payload.t}</#escape>
