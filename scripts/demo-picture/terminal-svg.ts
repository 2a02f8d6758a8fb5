/** A part of a line of a terminal, in one style. */
interface Piece {
  readonly style: string
  readonly text: string
}

const COLUMNS = 104
const INDENT = 13
const CHARACTER = 8
const LINE = 21
const MARGIN = 20
/** The bar above the text. */
const BAR = 34
/** The time between two lines of the output. */
const STEP_MS = 900

const STYLES: Readonly<Record<string, string>> = {
  '1': 'bold',
  '31': 'red',
  '32': 'green',
  '36': 'cyan',
}

/**
 * Draws what a command has printed, colours included, as a terminal in which line after line appears. Without animations, and
 * for people who want less motion, all lines are there from the start.
 */
export function terminalSvg(command: string, printed: string): string {
  const lines = printed.trimEnd().split('\n')
  const rows = [
    {
      pieces: [
        { style: 'dim', text: '$ ' },
        { style: 'bold', text: command },
      ],
      step: 0,
    },
    ...lines.flatMap((line, index) =>
      wrapped(piecesOf(line)).map((pieces) => ({ pieces, step: index + 1 })),
    ),
  ]
  const width = COLUMNS * CHARACTER + 2 * MARGIN
  const height = BAR + rows.length * LINE + 2 * MARGIN
  const drawn = rows.map(({ pieces, step }, row) => {
    const y = BAR + MARGIN + (row + 1) * LINE - 6
    return `<g class="line" style="animation-delay:${step * STEP_MS}ms">${drawnLine(pieces, y)}</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title text">
<title id="title">What ${escaped(command)} prints</title>
<desc id="text">${escaped(plain(printed.trimEnd()))}</desc>
<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d6deeb; white-space: pre }
.bold { font-weight: 700; fill: #fff }
.green { fill: #7ee787 }
.red { fill: #ff7b72 }
.cyan { fill: #79c0ff }
.dim { fill: #8b949e }
.line { animation: appear 1ms linear both }
@keyframes appear { from { opacity: 0 } to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { .line { animation: none } }
</style>
<rect width="${width}" height="${height}" rx="10" fill="#0d1117"/>
<circle cx="22" cy="20" r="6" fill="#30363d"/><circle cx="42" cy="20" r="6" fill="#30363d"/><circle cx="62" cy="20" r="6" fill="#30363d"/>
${drawn.join('\n')}
</svg>
`
}

/** The text without colours. */
export function plain(printed: string): string {
  return printed
    .split('\n')
    .map((line) =>
      piecesOf(line)
        .map(({ text }) => text)
        .join(''),
    )
    .join('\n')
}

/** Cuts a line where a colour begins or ends. */
function piecesOf(line: string): Piece[] {
  const pieces: Piece[] = []
  let style = ''
  for (const [index, part] of line.split(/\u001B\[(\d+)m/).entries()) {
    if (index % 2 === 1) style = STYLES[part] ?? ''
    else if (part !== '') pieces.push({ style, text: part })
  }
  return pieces
}

/** Breaks a line at spaces where the terminal ends; what follows is indented below the text of the line. */
function wrapped(pieces: readonly Piece[]): Piece[][] {
  const rows: Piece[][] = [[]]
  let column = 0
  for (const { style, text } of pieces)
    for (const word of text.split(/(?<= )/)) {
      if (column + word.trimEnd().length > COLUMNS) {
        rows.push([{ style: '', text: ' '.repeat(INDENT) }])
        column = INDENT
      }
      rows.at(-1)!.push({ style, text: word })
      column += word.length
    }
  return rows.map(joined)
}

/** Joins neighbours of one style. */
function joined(pieces: readonly Piece[]): Piece[] {
  const result: Piece[] = []
  for (const piece of pieces) {
    const last = result.at(-1)
    if (last?.style === piece.style)
      result.splice(-1, 1, { style: last.style, text: last.text + piece.text })
    else result.push(piece)
  }
  return result
}

/** Each piece has its place and its length, so that columns hold in every font. */
function drawnLine(pieces: readonly Piece[], y: number): string {
  let column = 0
  return pieces
    .map(({ style, text }) => {
      const blank = text.length - text.trimStart().length
      const word = text.trim()
      const x = MARGIN + (column + blank) * CHARACTER
      column += text.length
      if (word === '') return ''
      const look = style === '' ? '' : ` class="${style}"`
      return `<text x="${x}" y="${y}" textLength="${word.length * CHARACTER}"${look}>${escaped(word)}</text>`
    })
    .join('')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
