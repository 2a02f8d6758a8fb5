import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PLAIN_CSS, plainDocsPage } from './plain-docs.ts'

/** One file of the page. */
export interface StudioFile {
  readonly body: Uint8Array
  /** Its media type. */
  readonly type: string
  readonly etag: string
  /** Whether the name contains a hash of the content, so that browsers may keep the file for ever. */
  readonly isImmutable: boolean
}

/** The files of the page, by their paths below `/studio/`. The documentation is below `docs/`. */
export interface StudioPage {
  /**
   * Returns the file at a path. Every other path is a route of the page and returns `index.html`,
   * except below `docs/` and `assets/`, where a path without a file returns undefined.
   */
  get(path: string): StudioFile | undefined
}

/**
 * Returns the page as files that a server can send, for the option `studio` of `createHttp`.
 *
 *     await serve(runtime, { port: 4111, auth: 'none', studio: studioFiles() })
 *
 * The published package contains the built files. In this repository the page is built from its sources
 * when the first file is requested, and kept under `.cache` until the sources change. Until it is built, every route
 * returns a page that says so and loads again.
 */
export function studioFiles(): StudioPage {
  let files: ReadonlyMap<string, StudioFile> | undefined
  const pages = new Map<number, StudioFile>()
  return {
    get(path) {
      const name = path.replace(/^\/+/, '')
      if (name.startsWith('docs/')) return docsFile(name.slice('docs/'.length))
      const folder = files ? undefined : pageFolder()
      if (folder?.type === 'building') {
        if (name.endsWith(BUILDING_CSS_NAME))
          return fileOf(BUILDING_CSS_NAME, Buffer.from(BUILDING_CSS))
        return name.startsWith('assets/') ? undefined : buildingPage(folder, name)
      }
      if (folder) files = readFiles(folder.path)
      if (!files) return undefined
      if (name.startsWith('assets/')) return files.get(name)
      const depth = name === 'index.html' ? 0 : name.split('/').length - 1
      const known = pages.get(depth)
      if (known) return known
      const page = pageAt(files.get('index.html')!, depth)
      // Routes of the page have only a few segments, so copies of the page for deeper paths are not cached.
      if (depth < 8) pages.set(depth, page)
      return page
    },
  }
}

/** Returns the page for a path of this depth. Links to assets are relative, so that the page works below any prefix. */
function pageAt({ body }: StudioFile, depth: number): StudioFile {
  const up = depth === 0 ? './' : '../'.repeat(depth)
  const html = Buffer.from(body).toString().replaceAll('"./assets/', `"${up}assets/`)
  return fileOf('index.html', Buffer.from(html))
}

/** Returns a file of the documentation, or a page that says how to build it. */
function docsFile(name: string): StudioFile | undefined {
  const folder = ['docs', '../dist/docs']
    .map((path) => join(import.meta.dirname, path))
    .find((path) => existsSync(path))
  if (folder === undefined) return unbuiltDocsFile(name)
  const path = name === '' ? 'index.html' : name
  // Only plain names are allowed, so that no address leads to a file outside the folder.
  if (!/^(?:[\w-]+\/)*[\w-]+\.\w+$/.test(path)) return undefined
  const file = join(folder, path)
  return existsSync(file) ? fileOf(path, readFileSync(file)) : undefined
}

/** In a clone whose documentation has not been built, its Markdown files are shown as they are. */
function unbuiltDocsFile(name: string): StudioFile | undefined {
  const repository = join(import.meta.dirname, '../../..')
  if (!existsSync(join(repository, 'docs/index.md')))
    return name === '' ? fileOf('index.html', Buffer.from(NO_DOCS)) : undefined
  if (name === 'plain.css') return fileOf(name, Buffer.from(PLAIN_CSS))
  const page = plainDocsPage(repository, name)
  return page === undefined ? undefined : fileOf('index.html', Buffer.from(page))
}

const NO_DOCS = `<!doctype html>
<html lang="en"><meta charset="utf-8" /><meta name="color-scheme" content="light dark" /><title>Documentation</title>
<p>The documentation is not built here: <code>npm run docs</code> in the repository builds it.</p>
<p><a href="../">Back to Studio</a></p></html>
`

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  json: 'application/json',
  md: 'text/markdown; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
}

function readFiles(folder: string): ReadonlyMap<string, StudioFile> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.\w+$/.test(name))
  return new Map(names.map((name) => [name, fileOf(name, readFileSync(join(folder, name)))]))
}

function fileOf(name: string, body: Buffer): StudioFile {
  return {
    body: new Uint8Array(body),
    type: TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
    isImmutable: name.startsWith('assets/'),
  }
}

/** Returns the folder with the built page: next to this file in the published package, else built now. */
function pageFolder(): PageFolder {
  const published = join(import.meta.dirname, 'page')
  if (existsSync(published)) return { type: 'built', path: published }
  return builtFromSource(join(import.meta.dirname, '..'))
}

type PageFolder =
  | { readonly type: 'built'; readonly path: string }
  | { readonly type: 'building'; readonly since: number; readonly error?: string }

/** The page until Studio is built. It loads again every second, and so becomes Studio. */
function buildingPage(
  { since, error }: Extract<PageFolder, { type: 'building' }>,
  name: string,
): StudioFile {
  const up = '../'.repeat(name.split('/').length - 1)
  const seconds = Math.round((Date.now() - since) / 1000)
  const refresh = error === undefined ? '<meta http-equiv="refresh" content="1" />' : ''
  const text =
    error === undefined
      ? `Building the page, once for this clone: ${seconds} s so far, usually less than 15.`
      : 'The page could not be built. The reason is in the output of the server.'
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />${refresh}
<title>Studio</title><link rel="stylesheet" href="${up}${BUILDING_CSS_NAME}" /></head>
<body><main><h1>Skein Studio</h1><p role="status">${text}</p></main></body></html>
`
  return fileOf('index.html', Buffer.from(html))
}

const BUILDING_CSS_NAME = 'building.css'
const BUILDING_CSS = `:root { color-scheme: light dark }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; font: 14px/1.5 system-ui, sans-serif }
body { background: light-dark(#fff, #0f1113); color: light-dark(#15181b, #e9ecef) }
main { padding: 0 24px 10vh; text-align: center }
h1 { margin: 0 0 4px; font-size: 1.143rem; font-weight: 600 }
p { margin: 0; color: light-dark(#545d66, #a0a9b3); font-variant-numeric: tabular-nums }
`

/** The files from which the page is built: its own sources, and those of the packages that it imports. */
const SOURCES = [
  'studio/{package.json,vite.config.ts}',
  'studio/src/**/*.{ts,tsx,css,html,svg,js}',
  'runtime/src/view/*.ts',
  'server/src/{client,operations}/*.ts',
  '{base,threads,governance}/src/**/*.ts',
]

/** The builds of this process, by the folders that they write. */
const builds = new Map<string, { readonly since: number; error?: string }>()

function builtFromSource(studio: string): PageFolder {
  const packages = join(studio, '..')
  const hash = createHash('sha256')
  for (const file of globSync(SOURCES, { cwd: packages }).toSorted())
    if (!/\.test(-d)?\.tsx?$/.test(file))
      hash.update(file).update(readFileSync(join(packages, file)))
  const cache = join(studio, '.cache')
  const folder = join(cache, `studio-${hash.digest('hex').slice(0, 16)}`)
  if (existsSync(folder)) return { type: 'built', path: folder }
  const started = builds.get(folder)
  if (started) return { type: 'building', ...started }
  const build: { readonly since: number; error?: string } = { since: Date.now() }
  builds.set(folder, build)
  mkdirSync(cache, { recursive: true })
  const building = mkdtempSync(`${folder}-`)
  const vite = join(
    dirname(createRequire(import.meta.url).resolve('vite/package.json')),
    'bin/vite.js',
  )
  const args = [vite, 'build', '--logLevel', 'error', '--outDir', building]
  const child = spawn(process.execPath, args, {
    cwd: studio,
    stdio: ['ignore', 'ignore', 'inherit'],
    // A test runner sets `NODE_ENV` to another value, with which React's much larger development build
    // would be bundled.
    env: { ...process.env, NODE_ENV: 'production' },
  })
  child.on('error', ({ message }) => (build.error = message))
  child.on('exit', (code) => {
    if (code !== 0) build.error ??= `vite ended with code ${code}`
    try {
      if (code === 0) renameSync(building, folder)
    } catch (error) {
      // Another process has built the same files faster, so its folder is used.
      if (!existsSync(folder)) build.error = String(error)
    }
    rmSync(building, { recursive: true, force: true })
  })
  return { type: 'building', ...build }
}
