<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:s="urn:bench:stock">
  <xsl:output method="xml" indent="no"/>
  <xsl:template match="@* | node()">
    <xsl:copy>
      <xsl:apply-templates select="@* | node()"/>
    </xsl:copy>
  </xsl:template>
  <xsl:template match="s:sellList">
    <s:tsiLlles>
      <xsl:for-each select="entry">
        <yrtne>
          <eman><xsl:value-of select="name"/></eman>
          <renwo><xsl:value-of select="owner"/></renwo>
          <tsoc><xsl:value-of select="cost"/></tsoc>
          <tnuoma><xsl:value-of select="amount"/></tnuoma>
        </yrtne>
      </xsl:for-each>
    </s:tsiLlles>
  </xsl:template>
</xsl:stylesheet>
