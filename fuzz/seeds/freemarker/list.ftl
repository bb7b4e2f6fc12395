<#assign total = 0>
<#list payload.items?sort_by("a") as i>
  <#if i.a gt 1 && i.n??>${i.n?upper_case}<#elseif !i?has_next>${i.a?string("0.00")}<#else>-</#if><#sep>, </#sep>
  <#assign total += i.a>
</#list>
${total?c} ${(payload.gone.x)!"none"} ${[1, 2, 3][1..]?join("+", "", ".")} ${"a ${payload.t?cap_first} b"?replace("[a-z]", "", "r")}
