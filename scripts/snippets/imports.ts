/** One import of a module: what it binds, and how it is written. */
interface Import {
  readonly from: string
  readonly isType: boolean
  /** `name` of `import name from` or `import * as name from`, as written. */
  readonly whole: readonly Binding[]
  readonly named: readonly Binding[]
}

interface Binding {
  readonly name: string
  readonly written: string
}

/** The width at which prettier breaks a line. */
const WIDTH = 100

/**
 * Returns the imports of a module that a part of it needs, with the names that it uses and no others, formatted as
 * prettier does. So a snippet can be pasted, and shows where each name comes from.
 */
export function importsFor(module: string, part: string): string {
  const code = withoutTexts(part)
  const uses = ({ name }: Binding): boolean =>
    // Not a property, as in `a.name` and `{ name: 1 }`; `{ name }` is a use.
    new RegExp(String.raw`(?<![\w$.'"\-])(?<!\. )${name}(?![\w$'"\-]|:)`).test(code)
  const lines = importsOf(module).flatMap(({ from, isType, whole, named }) => {
    const used = whole.filter(uses).map(({ written }) => written)
    const names = named.filter(uses).map(({ written }) => written)
    if (used.length + names.length === 0) return []
    const begin = `import ${isType ? 'type ' : ''}`
    const short = [...used, ...(names.length > 0 ? [`{ ${names.join(', ')} }`] : [])].join(', ')
    const line = `${begin}${short} from '${from}'`
    if (line.length <= WIDTH) return [line]
    const long = [...used, `{\n${names.map((name) => `  ${name},\n`).join('')}}`].join(', ')
    return [`${begin}${long} from '${from}'`]
  })
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

function importsOf(module: string): Import[] {
  const pattern = /^import (type )?([^'"]*?) from '([^']+)'$/gm
  return [...module.matchAll(pattern)].map(([, type, clause = '', from = '']) => {
    const [, before = '', braces = ''] = /^([^{]*)(?:\{([^]*)\})?$/.exec(clause.trim()) ?? []
    const split = (text: string): Binding[] =>
      text
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== '')
        .map((written) => ({
          name: written
            .replace(/^type /, '')
            .split(' as ')
            .at(-1)!,
          written,
        }))
    return { from, isType: type !== undefined, whole: split(before), named: split(braces) }
  })
}

/** Code without comments and without the words of texts; what is inserted into a text stays. */
function withoutTexts(code: string): string {
  const texts = /\/\*[^]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g
  return code.replaceAll(texts, (text) =>
    text.startsWith('`') ? [...text.matchAll(/\$\{[^]*?\}/g)].join(' ') : ' ',
  )
}
