import { useEffect, useState } from 'react'

/** The result of a read, with its states: loading, loaded, failed. */
export interface Resource<T> {
  readonly value?: T
  readonly error?: unknown
  readonly isLoading: boolean
  reload(): void
}

/** Reads something when the component is mounted and whenever `key` changes. If `key` is undefined, nothing is read. */
export function useResource<T>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<T>,
): Resource<T> {
  const [count, setCount] = useState(0)
  const [state, setState] = useState<{ key?: string; value?: T; error?: unknown }>({})
  useEffect(() => {
    if (key === undefined) return
    const abort = new AbortController()
    read(abort.signal).then(
      (value) => !abort.signal.aborted && setState({ key, value }),
      (error: unknown) => !abort.signal.aborted && setState({ key, error }),
    )
    return () => abort.abort()
    // `read` is a new function at each render, so it is no dependency; `key` identifies what it reads.
  }, [key, count])
  const isCurrent = state.key === key
  return {
    value: isCurrent ? state.value : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: key !== undefined && !isCurrent,
    reload: () => setCount(count + 1),
  }
}
