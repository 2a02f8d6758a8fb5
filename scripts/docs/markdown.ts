/** The few things about Markdown that the site, the check of links and the bundles share. */

export interface Heading {
  readonly level: number
  readonly text: string
  /** GitHub's anchor. */
  readonly slug: string
  /** The anchor on the site: the same, but a heading that is one name in code keeps its letters. */
  readonly id: string
  /** Where the line of the heading begins and ends in the text. */
  readonly start: number
  readonly end: number
}

/** A part of a text: a code fence, or the text between two. */
interface Part {
  readonly isCode: boolean
  readonly text: string
  readonly start: number
}

function parts(markdown: string): Part[] {
  const found: Part[] = []
  let fence: string | undefined
  let start = 0
  let at = 0
  for (const line of markdown.split(/(?<=\n)/)) {
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line.trimEnd())
    if (fence === undefined && mark) {
      found.push({ isCode: false, text: markdown.slice(start, at), start })
      fence = mark[1]!
      start = at
    } else if (fence !== undefined && mark?.[1]?.startsWith(fence) && mark[2] === '') {
      found.push({ isCode: true, text: markdown.slice(start, at + line.length), start })
      fence = undefined
      start = at + line.length
    }
    at += line.length
  }
  found.push({ isCode: fence !== undefined, text: markdown.slice(start), start })
  return found.filter(({ text }) => text !== '')
}

/** The headings of a page in order, with the anchors that GitHub gives them. */
export function headingsOf(markdown: string): Heading[] {
  const taken = new Map<string, number>()
  return parts(markdown)
    .filter(({ isCode }) => !isCode)
    .flatMap(({ text, start }) =>
      [...text.matchAll(/^(#{1,6}) +(.+?) *#*$/gm)].map((match) => {
        const title = plainText(match[2]!)
        const first = slugOf(title)
        const before = taken.get(first) ?? 0
        taken.set(first, before + 1)
        const slug = before === 0 ? first : `${first}-${before}`
        return {
          level: match[1]!.length,
          text: title,
          slug,
          id: /^`[A-Za-z_$][\w$]*`$/.test(match[2]!) && before === 0 ? title : slug,
          start: start + match.index,
          end: start + match.index + match[0].length,
        }
      }),
    )
}

/** GitHub's anchor of a heading. */
export function slugOf(heading: string): string {
  return plainText(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** The words of a line without the marks of links, code and stress. */
export function plainText(markdown: string): string {
  return markdown
    .replaceAll(/!?\[((?:[^[\]]|\[[^\]]*\])*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\\([<>[\]_|])/g, '$1')
    .trim()
}

export interface Link {
  readonly isImage: boolean
  readonly text: string
  readonly href: string
}

/**
 * Gives every link and image outside code to `change`, which returns the address to write, or undefined to leave
 * only the text of the link.
 */
export function mapLinks(markdown: string, change: (link: Link) => string | undefined): string {
  const pattern =
    /(`+)[\s\S]*?\1|(!?)\[((?:[^[\]]|\[[^\]]*\](?:\([^)\s]*\))?)*)\]\(<?([^)\s>]+)>?((?:\s+"[^"]*")?)\)/g
  return parts(markdown)
    .map(({ isCode, text }) =>
      isCode
        ? text
        : text.replaceAll(
            pattern,
            (all, code: string | undefined, bang: string, label: string, href: string, title) => {
              if (code !== undefined) return all
              const isImage = bang === '!'
              const inner = isImage ? label : mapLinks(label, change)
              const address = change({ isImage, text: plainText(label), href })
              return address === undefined ? inner : `${bang}[${inner}](${address}${title})`
            },
          ),
    )
    .join('')
}

/** Every link and image of a page. */
export function linksOf(markdown: string): Link[] {
  const links: Link[] = []
  mapLinks(markdown, (link) => {
    links.push(link)
    return link.href
  })
  return links
}

/** `title` and `order` of a page's front matter, and the text after it. */
export function frontMatter(file: string): {
  readonly title?: string
  readonly order?: number
  readonly text: string
} {
  const match = /^---\n([\s\S]*?)\n---\n+/.exec(file)
  if (!match) return { text: file }
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}: *(.+)$`, 'm').exec(match[1]!)?.[1]?.replaceAll(/^['"]|['"]$/g, '')
  const order = field('order')
  const title = field('title')
  return {
    ...(title === undefined ? {} : { title }),
    ...(order === undefined ? {} : { order: Number(order) }),
    text: file.slice(match[0].length),
  }
}
