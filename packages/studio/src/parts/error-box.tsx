import { Component, type ReactNode } from 'react'
import { Copy } from './copy.tsx'

/** An error with its code, its hint, and a way to try again. */
export function ErrorBox({
  error,
  retry,
}: {
  readonly error: unknown
  readonly retry?: () => void
}): ReactNode {
  const { code, message, hint } = described(error)
  return (
    <div className="error" role="alert">
      <strong>{message}</strong> {code !== undefined && <code className="soft">{code}</code>}
      {hint !== undefined && <p>{hint}</p>}
      <div className="btns row-end">
        {retry && (
          <button type="button" className="btn tiny" onClick={retry}>
            Try again
          </button>
        )}
        <Copy text={[code, message, hint].filter(Boolean).join('\n')} label="Copy the error" />
      </div>
    </div>
  )
}

/** Catches errors of the components inside it, so that one broken screen does not break the whole page. */
export class Boundary extends Component<
  { readonly children: ReactNode },
  { readonly error?: unknown }
> {
  override state: { readonly error?: unknown } = {}

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error }
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children
    return (
      <div className="page">
        <ErrorBox error={this.state.error} retry={() => location.reload()} />
      </div>
    )
  }
}

function described(error: unknown): { code?: string; message: string; hint?: string } {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, hint } = error as { code?: unknown; hint?: unknown }
  return {
    message: error.message,
    code: typeof code === 'string' ? code : undefined,
    hint: typeof hint === 'string' ? hint : undefined,
  }
}
