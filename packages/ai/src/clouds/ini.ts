/** Reads the sections of an INI file as AWS writes them: comments begin a line, indented lines belong to the one before. */
export function parseIni(text: string): Record<string, Record<string, string>> {
  const sections: Record<string, Record<string, string>> = Object.create(null)
  let section: Record<string, string> | undefined
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*([#;]|$)/.test(line)) continue
    const header = /^\[([^\]]*)\]/.exec(line)
    if (header) {
      section = sections[header[1]!.trim().replace(/\s+/g, ' ')] ??= Object.create(null) as Record<string, string> // prettier-ignore
      continue
    }
    const equals = line.indexOf('=')
    if (!section || equals < 0 || /^\s/.test(line)) continue
    const value = line.slice(equals + 1)
    const comment = value.search(/\s[#;]/)
    section[line.slice(0, equals).trim()] = (comment < 0 ? value : value.slice(0, comment)).trim()
  }
  return sections
}
