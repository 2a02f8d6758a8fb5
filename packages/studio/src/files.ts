import { execFileSync } from 'node:child_process'
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
 * when the first file is requested, and kept under `.cache` until the sources change.
 */
export function studioFiles(): StudioPage {
  let files: ReadonlyMap<string, StudioFile> | undefined
  const pages = new Map<number, StudioFile>()
  return {
    get(path) {
      const name = path.replace(/^\/+/, '')
      if (name.startsWith('docs/')) return docsFile(name.slice('docs/'.length))
      files ??= readFiles(pageFolder())
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
  if (folder === undefined)
    return name === '' ? fileOf('index.html', Buffer.from(NO_DOCS)) : undefined
  const path = name === '' ? 'index.html' : name
  // Only plain names are allowed, so that no address leads to a file outside the folder.
  if (!/^(?:[\w-]+\/)*[\w-]+\.\w+$/.test(path)) return undefined
  const file = join(folder, path)
  return existsSync(file) ? fileOf(path, readFileSync(file)) : undefined
}

const NO_DOCS = `<!doctype html>
<html lang="en"><meta charset="utf-8" /><title>Documentation</title>
<p>The documentation is not built here: <code>npm run docs</code> in the repository builds it.</p></html>
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

/** Returns the folder with the built page: beside this file in the published package, else built now. */
function pageFolder(): string {
  const published = join(import.meta.dirname, 'page')
  return existsSync(published) ? published : builtFromSource(join(import.meta.dirname, '..'))
}

/** The files from which the page is built: its own sources, and those of the packages that it imports. */
const SOURCES = [
  'studio/{package.json,vite.config.ts}',
  'studio/src/**/*.{ts,tsx,css,html,svg,js}',
  'runtime/src/{view,client,operations}/*.ts',
  '{base,threads,governance}/src/**/*.ts',
]

function builtFromSource(studio: string): string {
  const packages = join(studio, '..')
  const hash = createHash('sha256')
  for (const file of globSync(SOURCES, { cwd: packages }).toSorted())
    if (!/\.test(-d)?\.tsx?$/.test(file))
      hash.update(file).update(readFileSync(join(packages, file)))
  const cache = join(studio, '.cache')
  const folder = join(cache, `studio-${hash.digest('hex').slice(0, 16)}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const building = mkdtempSync(`${folder}-`)
  const vite = join(
    dirname(createRequire(import.meta.url).resolve('vite/package.json')),
    'bin/vite.js',
  )
  execFileSync(process.execPath, [vite, 'build', '--logLevel', 'error', '--outDir', building], {
    cwd: studio,
    stdio: ['ignore', 'ignore', 'inherit'],
    // A test runner sets `NODE_ENV` to another value, with which React's much larger development build
    // would be bundled.
    env: { ...process.env, NODE_ENV: 'production' },
  })
  try {
    renameSync(building, folder)
  } catch (error) {
    rmSync(building, { recursive: true, force: true })
    // Another process has built the same files faster, so its folder is used.
    if (!existsSync(folder)) throw error
  }
  return folder
}
