/** One package in the picture: its row, its columns, and what it is. */
interface Box {
  readonly name: string
  readonly left: number
  readonly right: number
  readonly text: string
  readonly row: number
}

/** What the text of the picture says. */
export interface PackagePicture {
  readonly boxes: readonly Box[]
  readonly rows: readonly { readonly names: readonly string[]; readonly text: string }[]
  readonly arrows: readonly { readonly from: string; readonly to: string }[]
}

const COLUMN = 84
const ROW = 84
const BOX_HEIGHT = 50
const MARGIN = 24

/**
 * Reads the text of the picture. A line is a package (`name 3-6 what it is`), a row (`row names  what they do`) or an
 * arrow (`from > to`). Throws if a line is something else.
 */
export function readPicture(text: string): PackagePicture {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const rows = lines.flatMap((line) => {
    const [, names, what] = /^row (\S+(?: \S+)*) {2,}(.+)$/.exec(line) ?? []
    return names === undefined ? [] : [{ names: names.split(' '), text: what! }]
  })
  const arrows = lines.flatMap((line) => {
    const [, from, to] = /^(\S+) > (\S+)$/.exec(line) ?? []
    return from === undefined ? [] : [{ from, to: to! }]
  })
  const boxes = lines.flatMap((line): Box[] => {
    const [, name, left, right, what] = /^(\S+) +(\d+)-(\d+) +(.+)$/.exec(line) ?? []
    if (name === undefined) return []
    const row = rows.findIndex(({ names }) => names.includes(name))
    if (row < 0) throw new Error(`The package ${name} is in no row.`)
    return [{ name, left: Number(left), right: Number(right), text: what!, row }]
  })
  if (rows.length + arrows.length + boxes.length !== lines.length)
    throw new Error('A line is neither a package, a row nor an arrow.')
  return { boxes, rows, arrows }
}

/** Draws the packages, the lowest at the bottom, with colours for light and dark pages. */
export function packagesSvg({ boxes, rows, arrows }: PackagePicture): string {
  const width = Math.max(...boxes.map(({ right }) => right)) * COLUMN + 2 * MARGIN
  const height = rows.length * ROW - (ROW - BOX_HEIGHT) + 2 * MARGIN
  const boxOf = (name: string): Box => {
    const box = boxes.find((one) => one.name === name)
    if (!box) throw new Error(`An arrow names ${name}, which is no package of the picture.`)
    return box
  }
  const parts = [
    ...rows.map(
      ({ text }, row) => `<text class="row" x="${MARGIN}" y="${top(row) + 30}">${text}</text>`,
    ),
    ...arrows.map(({ from, to }) => drawnArrow(boxOf(from), boxOf(to))),
    ...boxes.map(drawnBox),
  ]
  const words = arrows.map(({ from, to }) => `${from} imports ${to}`).join(', ')
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title text">
<title id="title">The packages and their direction</title>
<desc id="text">${words}.</desc>
<style>
text { font: 13px system-ui, 'Segoe UI', Roboto, sans-serif; fill: #57606a }
.page { fill: #ffffff }
.box { fill: #f6f8fa; stroke: #8c959f }
.name { font-weight: 600; font-size: 15px; fill: #1f2328 }
.row { font-style: italic }
.arrow { stroke: #57606a; stroke-width: 1.5; fill: none }
.head { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #9da7b1 }
  .page { fill: #0d1117 }
  .box { fill: #161b22; stroke: #6e7681 }
  .name { fill: #f0f6fc }
  .arrow { stroke: #9da7b1 }
  .head { fill: #9da7b1 }
}
</style>
<rect class="page" width="${width}" height="${height}" rx="10"/>
${parts.join('\n')}
</svg>
`
}

function top(row: number): number {
  return MARGIN + row * ROW
}

function drawnBox({ name, left, right, text, row }: Box): string {
  const x = MARGIN + left * COLUMN + 6
  const width = (right - left) * COLUMN - 12
  const middle = x + width / 2
  return `<rect class="box" x="${x}" y="${top(row)}" width="${width}" height="${BOX_HEIGHT}" rx="6"/>
<text class="name" x="${middle}" y="${top(row) + 21}" text-anchor="middle">${name}</text>
<text x="${middle}" y="${top(row) + 39}" text-anchor="middle">${text}</text>`
}

/** An arrow runs straight down, in the middle of the narrower box. */
function drawnArrow(from: Box, to: Box): string {
  const { left, right } = to.right - to.left < from.right - from.left ? to : from
  const x = MARGIN + ((left + right) / 2) * COLUMN
  const start = top(from.row) + BOX_HEIGHT
  const end = top(to.row) - 2
  return `<path class="arrow" d="M${x} ${start}V${end - 7}"/><path class="head" d="M${x - 5} ${end - 8}h10l-5 8z"/>`
}
