import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import type { Peers } from '../peers.ts'
import { root } from '../workspace.ts'
import { programOf } from '../snippets/snippets.ts'
import { headingsOf } from './markdown.ts'
import { pagesByLink, withSiteLinks, type Page, type Section } from './pages.ts'

interface EleventyModule {
  readonly default: new (
    input: string,
    output: string,
    options: { quietMode: boolean; config: (config: EleventyConfig) => object },
  ) => { init(): Promise<void>; write(): Promise<unknown> }
}

/** What this file uses of Eleventy's configuration. */
interface EleventyConfig {
  setUseGitIgnore(use: boolean): void
  addGlobalData(name: string, value: unknown): void
  amendLibrary(name: 'md', change: (markdown: MarkdownIt) => void): void
}

/** What this file uses of markdown-it. */
interface MarkdownIt {
  set(options: object): void
  enable(rule: string): void
  readonly core: {
    readonly ruler: { push(name: string, rule: (state: MarkdownState) => void): void }
  }
  readonly renderer: { readonly rules: Record<string, (...args: unknown[]) => string> }
}

interface MarkdownState {
  readonly src: string
  readonly tokens: readonly Token[]
  readonly Token: new (type: string, tag: string, nesting: number) => Token
}

interface Token {
  readonly type: string
  readonly level: number
  readonly info: string
  content: string
  children: Token[] | null
  attrs: Array<[name: string, value: string]> | null
  attrSet(name: string, value: string): void
}

interface Highlighter {
  readonly default: {
    getLanguage(name: string): unknown
    highlight(code: string, options: { language: string }): { readonly value: string }
  }
}

/** Files of the site that every page names. */
export interface Assets {
  readonly style: string
  readonly script: string
  readonly theme: string
  readonly icon: string
  readonly search: string
}

interface WriteOptions {
  readonly source: string
  readonly out: string
  readonly assets: Assets
}

/** HTML by Eleventy, from Markdown whose links lead to HTML. */
export async function writePages(
  sections: readonly Section[],
  peers: Peers,
  { source, out, assets }: WriteOptions,
): Promise<void> {
  const pages = pagesByLink(sections)
  const listed = sections.flatMap((section) =>
    section.isListed ? section.pages : section.pages.slice(0, 1),
  )
  const groups = sections.map(({ title, isListed, pages: own }) => ({
    title,
    items: (isListed ? own : own.slice(0, 1)).map((page) => ({
      path: page.path,
      title: shortTitle(page),
    })),
  }))
  for (const section of sections) {
    for (const page of section.pages) {
      const at = listed.indexOf(page)
      const near = (other: Page | undefined): object | undefined =>
        other && { path: other.path, title: shortTitle(other) }
      const data = {
        layout: 'page.njk',
        permalink: `${page.path}.html`,
        title: page.title,
        path: page.path,
        navPath: at < 0 ? section.pages[0]!.path : page.path,
        name: posix.basename(page.path),
        up: '../'.repeat(page.path.split('/').length - 1),
        outline: headingsOf(page.text)
          .filter(({ level }) => level === 2 || level === 3)
          .map(({ level, id, text }) => ({ level, id, text })),
        before: at > 0 ? near(listed[at - 1]) : undefined,
        after: at < 0 ? undefined : near(listed[at + 1]),
      }
      const { text } = withSiteLinks(page, pages, '.html')
      const file = join(source, `${page.path}.md`)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, `---json\n${JSON.stringify(data)}\n---\n${text}`)
    }
  }
  mkdirSync(join(source, '_includes'), { recursive: true })
  cpSync(join(root, 'docs/site/page.njk'), join(source, '_includes/page.njk'))
  const { default: Eleventy } = await peers.load<EleventyModule>('@11ty/eleventy')
  const { default: highlighter } = await peers.load<Highlighter>('highlight.js')
  const eleventy = new Eleventy(relative(process.cwd(), source), relative(process.cwd(), out), {
    quietMode: true,
    config(config) {
      config.setUseGitIgnore(false)
      config.addGlobalData('assets', assets)
      config.addGlobalData('groups', groups)
      config.amendLibrary('md', (markdown) => readAsGitHub(markdown, highlighter))
      return { markdownTemplateEngine: false }
    },
  })
  await eleventy.init()
  await eleventy.write()
}

/** Headings have the anchors that links name, code has classes instead of styles, and HTML in the text is text. */
function readAsGitHub(markdown: MarkdownIt, highlighter: Highlighter['default']): void {
  markdown.set({
    html: false,
    highlight: (code: string, name: string) => {
      const language = name === 'jsonl' ? 'json' : name
      return highlighter.getLanguage(language)
        ? highlighter.highlight(code, { language }).value
        : ''
    },
  })
  // Eleventy turns code by indentation off.
  markdown.enable('code')
  // What may scroll sideways can be reached by keyboard.
  const { rules } = markdown.renderer
  for (const name of ['fence', 'code_block']) {
    const plain = rules[name]!
    rules[name] = (...args) => {
      const code = `<div class="code">${plain(...args).replace('<pre', '<pre tabindex="0"')}</div>\n`
      const [tokens, at] = args as [readonly Token[], number]
      return code + wholeProgram(tokens[at]!.info, highlighter)
    }
  }
  rules['table_open'] = () => '<div class="table" tabindex="0"><table>'
  rules['table_close'] = () => '</table></div>\n'
  markdown.core.ruler.push('anchors', ({ src, tokens, Token }) => {
    const headings = headingsOf(src)
    let next = 0
    for (const [at, token] of tokens.entries()) {
      if (/^t[hd]_open$/.test(token.type) && token.attrs)
        token.attrs = token.attrs.map(([, style]) => ['class', style.replace('text-align:', 'at-')])
      if (token.type !== 'heading_open' || token.level > 0) continue
      const id = headings[next++]?.id
      const inline = tokens[at + 1]
      if (id === undefined || !inline?.children) continue
      token.attrSet('id', id)
      if (inline.children.some(({ type }) => type === 'link_open')) continue
      const open = new Token('link_open', 'a', 1)
      open.attrSet('href', `#${id}`)
      open.attrSet('class', 'anchor')
      inline.children = [open, ...inline.children, new Token('link_close', 'a', -1)]
    }
  })
}

/** What a part of a program is followed by: the program, which opens in place. */
function wholeProgram(info: string, highlighter: Highlighter['default']): string {
  const program = programOf(info, root)
  if (!program) return ''
  const { value } = highlighter.highlight(program.text, { language: 'ts' })
  return `<details class="program"><summary>Whole program: ${program.path}</summary>
<div class="code"><pre tabindex="0"><code class="language-ts">${value}</code></pre></div></details>\n`
}

/** Package pages are listed by the name that one imports, without what all of them repeat. */
function shortTitle({ title }: Page): string {
  return title.replace(/: reference$/, '')
}
