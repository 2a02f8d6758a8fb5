import { parseSync } from 'vite'
import { declaredNames, lineCounter, walk, type Node } from './measure.ts'

/** Top-level declarations of a file that refer to each other, directly or through others. */
export interface DeclarationGroup {
  readonly names: readonly string[]
  /** Lines of its declarations, their comments included. */
  readonly lines: number
}

interface Declaration {
  readonly names: readonly string[]
  readonly mentions: ReadonlySet<string>
  readonly lines: number
}

/** The groups of a file, largest first. Imports and lists of exports connect nothing. */
export function declarationGroups(path: string, text: string): DeclarationGroup[] {
  const { program, comments } = parseSync(path, text)
  const lineOf = lineCounter(text)
  let end = 0
  const declarations: Declaration[] = []
  for (const node of program.body as unknown as readonly Node[]) {
    const before = comments.find((one) => one.start >= end && one.end <= node.start)
    const start = before?.start ?? node.start
    end = node.end
    const isList = node.type === 'ExportNamedDeclaration' && !node['declaration']
    if (isList || /^(Import|ExportAll)Declaration$/.test(node.type)) continue
    declarations.push({
      names: namesOf(node),
      mentions: mentionedNames(node),
      lines: lineOf(node.end) - lineOf(start) + 1,
    })
  }
  return connected(declarations)
}

/** The groups of a file that have at least `minLines` lines, if there are two or more. */
export function unconnectedGroups(path: string, text: string, minLines = 30): DeclarationGroup[] {
  const large = declarationGroups(path, text).filter(({ lines }) => lines >= minLines)
  return large.length > 1 ? large : []
}

function namesOf(node: Node): string[] {
  const declaration = (node['declaration'] ?? node) as Node
  const isNamed = 'declarations' in declaration || declaration['id'] != null
  return isNamed ? declaredNames(declaration).filter(Boolean) : []
}

function mentionedNames(node: Node): Set<string> {
  const names = new Set<string>()
  walk(node, (one) => {
    if (one.type === 'Identifier' || one.type === 'JSXIdentifier') names.add(one['name'] as string)
  })
  return names
}

function connected(declarations: readonly Declaration[]): DeclarationGroup[] {
  const groups: { names: string[]; mentions: Set<string>; lines: number }[] = []
  for (const { names, mentions, lines } of declarations) {
    const joined = { names: [...names], mentions: new Set(mentions), lines }
    for (let index = groups.length - 1; index >= 0; index--) {
      const group = groups[index]!
      const refers =
        group.names.some((name) => mentions.has(name)) ||
        names.some((name) => group.mentions.has(name))
      if (!refers) continue
      groups.splice(index, 1)
      joined.names.unshift(...group.names)
      for (const name of group.mentions) joined.mentions.add(name)
      joined.lines += group.lines
    }
    groups.push(joined)
  }
  return groups
    .map(({ names, lines }) => ({ names: [...new Set(names)], lines }))
    .toSorted((a, b) => b.lines - a.lines)
}
