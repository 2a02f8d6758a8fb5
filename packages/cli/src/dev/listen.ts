import type { EmbeddedRuntime } from '@skein/runtime'
import type { ServeOptions, Serving } from '@skein/runtime/http'

export const DEFAULT_PORT = 4111
const TRIES = 50

/** Serves on a port, or on the next that is free; 0 is any. */
export async function listen(runtime: EmbeddedRuntime, options: ServeOptions): Promise<Serving> {
  const { serve } = await import('@skein/runtime/http')
  for (let port = options.port; ; port++) {
    try {
      return await serve(runtime, { ...options, port })
    } catch (error) {
      const isTaken = (error as { code?: unknown }).code === 'PORT_TAKEN'
      if (!isTaken || port - options.port >= TRIES || port >= 65_535) throw error
    }
  }
}
