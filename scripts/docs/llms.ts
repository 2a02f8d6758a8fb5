import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../workspace.ts'
import { mapLinks, plainText } from './markdown.ts'
import { pagesByLink, withSiteLinks, type Section } from './pages.ts'
import type { Declared, Entry } from './reference.ts'

/** Files for coding agents, by name. */
export type Bundles = ReadonlyMap<string, string>

interface Reference {
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
    references.map(({ short, entries }) => {
      const page = pages.get(`packages/${short}/README.md`)!
      const manual = mapLinks(withSiteLinks(page, pages, '.md').text, ({ href, isImage }) =>
        isImage ? undefined : fromRoot(href),
      )
      const head = `${manual.trim()}\n\n# Declarations\n\nEach entry with its names. The whole reference: reference/${short}.md\n`
      return [`llms-${short}.txt`, head + declarations(entries, MAX_BUNDLE_BYTES - bytes(head))]
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

/** Declarations of the smallest size first, as many as there is room for; the rest by name. */
function declarations(entries: readonly Entry[], room: number): string {
  const seen = new Set<string>()
  const fresh = entries.map(({ specifier, names }) => ({
    specifier,
    names: names.filter(({ name, file }) => {
      const isNew = !seen.has(`${file} ${name}`)
      seen.add(`${file} ${name}`)
      return isNew
    }),
  }))
  const texts = new Map(
    fresh.flatMap(({ names }) =>
      names.map(
        (one) => [one, `// ${firstSentence(one.doc)}\n${compact(one.signature)}\n`] as const,
      ),
    ),
  )
  // Every name is listed at least; a fence and a heading for each entry.
  let left = room - [...texts.keys()].reduce((sum, { name }) => sum + name.length + 2, 0)
  for (const { specifier } of fresh) left -= specifier.length + 40
  const shown = new Set<Declared>()
  for (const [one, text] of [...texts].toSorted(([, a], [, b]) => a.length - b.length)) {
    left -= bytes(text) + 1
    if (left < 0) break
    shown.add(one)
  }
  return fresh
    .filter(({ names }) => names.length > 0)
    .map(({ specifier, names }) => {
      const kept = names.filter((one) => shown.has(one)).map((one) => texts.get(one)!)
      const others = names.filter((one) => !shown.has(one)).map(({ name }) => name)
      const code = kept.length === 0 ? '' : `\n\`\`\`ts\n${kept.join('\n')}\`\`\`\n`
      const rest = others.length === 0 ? '' : `\nAlso: ${others.join(', ')}.\n`
      return `\n## ${specifier}\n${code}${rest}`
    })
    .join('')
}

/** The first sentence; a long one only up to its colon. */
function firstSentence(doc: string): string {
  const line = plainText(doc.split('\n\n')[0] ?? '').replaceAll('\n', ' ')
  const sentence = /^.*?\.(?= |$)/.exec(line)?.[0] ?? line
  return sentence.length <= MAX_SENTENCE ? sentence : sentence.replace(/[:;] .*/, '.')
}

const MAX_SENTENCE = 160

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
  const lists = sections.map(({ title, pages, isListed }) => {
    // Titles of examples and decisions say enough, and there are many.
    const about = (text: string): string => (isListed ? summary(text) : '')
    const items = pages.map((page) => `- [${page.title}](${page.path}.md)${about(page.text)}`)
    return `## ${title}\n\n${items.join('\n')}`
  })
  const whole = [...bundles.keys()].map((name) => `- [${name}](${name})`)
  return `${guide}\n\n${lists.join('\n\n')}\n\n## One file per package\n\n${whole.join('\n')}\n`
}

/** The first sentence under the title, if it is short. */
function summary(text: string): string {
  const paragraph = /^# .+\n+((?:[^\n#`|>-].*\n?)+)/m.exec(text)?.[1] ?? ''
  const sentence = firstSentence(paragraph)
  return sentence === '' || sentence.length > MAX_SENTENCE ? '' : `: ${sentence}`
}
