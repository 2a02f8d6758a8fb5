import { join } from 'node:path'
import { Declarations, typeEntries } from '../check/declarations.ts'
import type { WorkspacePackage } from '../workspace.ts'

/** An exported name with its declaration as users see it. */
export interface Declared {
  readonly name: string
  /** Its doc comment as Markdown. */
  readonly doc: string
  /** The declaration, overloads one after another, with the comments of members. */
  readonly signature: string
  /** The declaration file. */
  readonly file: string
}

export interface Entry {
  /** What users import, `@skein/ai/testing`. */
  readonly specifier: string
  readonly names: readonly Declared[]
}

/** Every exported name of every entry of a package, read from the declarations that `tsc -b` has emitted. */
export function entriesOf({ name, folder, manifest }: WorkspacePackage): Entry[] {
  const declarations = new Declarations()
  return typeEntries(manifest.exports).map(([path, file]) => ({
    specifier: name + path.slice(1),
    names: [...declarations.exportsOf(join(folder, file))]
      .map(([exported, found]): Declared => {
        if (typeof found === 'string')
          return {
            name: exported,
            doc: `The same as in \`${found}\`.`,
            signature: `export { ${exported} } from '${found}'`,
            file: found,
          }
        const { doc, commented } = found
        const own = exported === 'default' ? `The default export, \`${found.name}\`. ` : ''
        return { name: exported, doc: own + fenced(doc), signature: commented, file: found.file }
      })
      .toSorted((a, b) => order(a.name, b.name)),
  }))
}

/** Functions and constants before types, each by letter. */
function order(a: string, b: string): number {
  const isType = (text: string): number => (/^[A-Z]/.test(text) ? 1 : 0)
  return isType(a) - isType(b) || a.localeCompare(b, 'en')
}

/** Examples in doc comments are indented by four; here they become fences. */
function fenced(doc: string): string {
  return doc.replaceAll(
    /(^|\n\n)((?: {4,}.*\n?|\n(?= {4}))+)/g,
    (_, before: string, code: string) => {
      const lines = code.trimEnd().split('\n')
      return `${before}\`\`\`ts\n${lines.map((line) => line.slice(4)).join('\n')}\n\`\`\`\n`
    },
  )
}

/** The reference of a package as a page. */
export function referencePage(name: string, entries: readonly Entry[]): string {
  const shown = new Map<string, string>()
  const parts = entries.map(({ specifier, names }) => {
    const described = names.map((declared) => {
      const key = `${declared.file} ${declared.name}`
      const first = shown.get(key)
      if (first === undefined) shown.set(key, specifier)
      const body =
        first === undefined
          ? `${declared.doc === '' ? '' : `${declared.doc}\n\n`}\`\`\`ts\n${tidy(declared.signature)}\n\`\`\``
          : `The same as in \`${first}\`.`
      return `### \`${declared.name}\`\n\n${body}\n`
    })
    return `## ${specifier}\n\n${described.join('\n')}`
  })
  return `# ${name}: reference\n\nEvery name that \`${name}\` exports, by entry, with its declaration. Made from the types.\n\n${parts.join('\n')}`
}

/** Declarations have no `export` where they are read, and two spaces of indentation. */
function tidy(signature: string): string {
  return signature
    .replaceAll(/^export (?:declare )?/gm, '')
    .replaceAll(/^\s*(?:private .*|#private;)\n/gm, '')
    .replaceAll(/^( {4})+/gm, (spaces) => ' '.repeat(spaces.length / 2))
    .trim()
}
