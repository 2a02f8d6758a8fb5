/** The built files of Studio, as `studioFiles()` of `@skein/studio` returns them. */
export interface StudioFiles {
  /** Returns a file by its path below `/studio/`; undefined if there is none. */
  get(path: string):
    | {
        readonly body: Uint8Array
        readonly type: string
        readonly etag: string
        /** Whether the name contains a hash of the content, so that browsers may keep the file for ever. */
        readonly isImmutable: boolean
      }
    | undefined
}

/** The page may load scripts, styles and data from this server alone, and has no inline script or style. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Answers requests for Studio's page: its files, which need no key, and the redirection of a browser at the
 * root. Returns undefined for all other requests. Addresses are relative, because a proxy may serve us below
 * another path than the one that we see.
 */
export function studioPage(
  files: StudioFiles,
  request: Request,
  prefix: string,
): Response | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
  const { pathname } = new URL(request.url)
  const root = `${prefix}/studio`
  if (pathname === root) return redirect('studio/')
  if (pathname === `${root}/docs`) return redirect('docs/')
  const isRoot = pathname === '/' || pathname === prefix || pathname === `${prefix}/`
  if (isRoot) {
    if (!/\btext\/html\b/.test(request.headers.get('accept') ?? '')) return undefined
    return redirect(`${root.slice(pathname.lastIndexOf('/') + 1)}/`)
  }
  if (!pathname.startsWith(`${root}/`)) return undefined
  const path = decoded(pathname.slice(root.length + 1))
  if (path === undefined || path === 'me' || path === 'session') return undefined
  const file = files.get(path) ?? (path.includes('.') ? undefined : files.get('index.html'))
  if (!file) return undefined
  const headers = {
    'content-type': file.type,
    etag: file.etag,
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    'content-security-policy': PAGE_POLICY,
  }
  if (request.headers.get('if-none-match') === file.etag)
    return new Response(null, { status: 304, headers })
  // The cast is safe: the files are not in shared memory.
  const body = request.method === 'HEAD' ? null : (file.body as Uint8Array<ArrayBuffer>)
  return new Response(body, { headers })
}

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { location, vary: 'accept' } })
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
