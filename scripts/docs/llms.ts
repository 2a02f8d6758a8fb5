import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../workspace.ts'
import { mapLinks, plainText } from './markdown.ts'
import { pagesByLink, withSiteLinks, type Section } from './pages.ts'
import type { Entry } from './reference.ts'

/** Files for coding agents, by name. */
export type Bundles = ReadonlyMap<string, string>

interface Reference {
  readonly name: string
  readonly short: string
  readonly entries: readonly Entry[]
}

/** A bundle stays below 20,000 tokens, counted as four bytes each. */
export const MAX_BUNDLE_BYTES = 80_000

/**
 * One file per package, `llms-<package>.txt`: its manual, then the declarations of its names as far as there is
 * room; those that do not fit are named.
 */
export function bundleTexts(
  sections: readonly Section[],
  references: readonly Reference[],
): Bundles {
  const pages = pagesByLink(sections)
  return new Map(
    references.map(({ name, short, entries }) => {
      const page = pages.get(`packages/${short}/README.md`)!
      const manual = mapLinks(withSiteLinks(page, pages, '.md').text, ({ href, isImage }) =>
        isImage ? undefined : fromRoot(href),
      )
      const head = `${manual.trim()}\n\n# Declarations\n\nEach entry with its names. The whole reference: reference/${short}.md\n`
      return [
        `llms-${short}.txt`,
        head + declarations(entries, MAX_BUNDLE_BYTES - bytes(head) - 500, name),
      ]
    }),
  )
}

/** Links of a package page (`packages/x`) as seen from the root of the site. */
function fromRoot(href: string): string {
  return /^[a-z]+:|^#/.test(href) ? href : join('packages', href).replaceAll('\\', '/')
}

function bytes(text: string): number {
  return Buffer.byteLength(text)
}

function declarations(entries: readonly Entry[], room: number, name: string): string {
  let left = room
  const seen = new Set<string>()
  const parts: string[] = []
  for (const { specifier, names } of entries) {
    const fresh = names.filter(({ name: own, file }) => !seen.has(`${file} ${own}`))
    for (const { name: own, file } of fresh) seen.add(`${file} ${own}`)
    const kept: string[] = []
    const dropped: string[] = []
    for (const { name: own, signature, doc } of fresh) {
      const text = `// ${firstSentence(doc)}\n${compact(signature)}\n`
      // The other entries must still be able to name what they have.
      if (bytes(text) < left - 40 * entries.length && bytes(text) < 2500) {
        kept.push(text)
        left -= bytes(text)
      } else {
        dropped.push(own)
        left -= own.length + 2
      }
    }
    const more = dropped.length === 0 ? '' : `Also: ${dropped.join(', ')}.\n`
    const shown = kept.length === 0 ? '' : `\`\`\`ts\n${kept.join('\n')}\`\`\`\n`
    const text = `\n## ${specifier === name ? name : specifier}\n\n${shown}${shown && more ? '\n' : ''}${more}`
    left -= text.length - kept.join('').length
    if (fresh.length > 0) parts.push(text)
  }
  return parts.join('')
}

function firstSentence(doc: string): string {
  const line = plainText(doc.split('\n\n')[0] ?? '').replaceAll('\n', ' ')
  return /^.*?[.:](?= |$)/.exec(line)?.[0] ?? line
}

/** A declaration without comments, one line per member. */
function compact(signature: string): string {
  return signature
    .replaceAll(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, '')
    .replaceAll(/^export (?:declare )?/gm, '')
    .replaceAll(/^( {4})+/gm, (spaces) => ' '.repeat(spaces.length / 2))
    .replaceAll(/^(\s*)readonly /gm, '$1')
    .replaceAll(/;$/gm, '')
    .trim()
}

/** `llms.txt`: enough to write a first program, then links to the Markdown of every page. */
export function indexText(sections: readonly Section[], bundles: Bundles): string {
  const guide = readFileSync(join(root, 'docs/site/llms.md'), 'utf8').trim()
  const lists = sections.map(({ title, pages }) => {
    const items = pages.map((page) => `- [${page.title}](${page.path}.md)${summary(page.text)}`)
    return `## ${title}\n\n${items.join('\n')}`
  })
  const whole = [...bundles.keys()].map((name) => `- [${name}](${name})`)
  return `${guide}\n\n## One file per package\n\n${whole.join('\n')}\n\n${lists.join('\n\n')}\n`
}

/** The first sentence under the title, if it is short. */
function summary(text: string): string {
  const paragraph = /^# .+\n+((?:[^\n#`|>-].*\n?)+)/m.exec(text)?.[1] ?? ''
  const sentence = firstSentence(paragraph)
  return sentence === '' || sentence.length > 160 ? '' : `: ${sentence}`
}
