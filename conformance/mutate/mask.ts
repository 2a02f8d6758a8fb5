/** A string literal and where it stands, quotes included. */
export interface Literal {
  readonly start: number
  readonly end: number
}

export interface MaskedSource {
  /** The source with comments, strings, templates and regular expressions blanked, offsets unchanged. */
  readonly code: string
  /** The plain string literals. */
  readonly strings: readonly Literal[]
}

const token = /\/\/.*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g
/** A slash after one of these begins a regular expression, not a division. */
const regularExpression =
  /(?<=(?:[(,=:[!&|?{};]|\breturn)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[dgimsuvy]*/g

/** Blanks everything that is not code, so that a search for operators finds operators only. */
export function maskSource(source: string): MaskedSource {
  const strings: Literal[] = []
  const withoutText = source.replaceAll(token, (text, at: number) => {
    if (text.startsWith("'") || text.startsWith('"'))
      strings.push({ start: at, end: at + text.length })
    return blank(text)
  })
  return { code: withoutText.replaceAll(regularExpression, blank), strings }
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}
