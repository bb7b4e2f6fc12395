<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:s="urn:bench:stock" xmlns:env="http://schemas.xmlsoap.org/soap/envelope/">
  <xsl:output method="xml" indent="no"/>
  <xsl:template match="@* | node()">
    <xsl:copy>
      <xsl:apply-templates select="@* | node()"/>
    </xsl:copy>
  </xsl:template>
  <xsl:template match="s:tsiLlles">
    <s:sellList>
      <xsl:for-each select="yrtne">
        <entry>
          <name><xsl:value-of select="eman"/></name>
          <owner><xsl:value-of select="renwo"/></owner>
          <cost><xsl:value-of select="tsoc"/></cost>
          <amount><xsl:value-of select="tnuoma"/></amount>
        </entry>
      </xsl:for-each>
    </s:sellList>
  </xsl:template>
</xsl:stylesheet>
