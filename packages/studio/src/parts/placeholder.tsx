import type { ReactNode } from 'react'

/** The text in place of an empty list: what would be here, and how to get it. */
export function Empty({
  title,
  isPage = false,
  children,
}: {
  readonly title: string
  /** Whether there is nothing else on the page, so that the title is that of the page. */
  readonly isPage?: boolean
  readonly children?: ReactNode
}): ReactNode {
  const Heading = isPage ? 'h1' : 'h2'
  return (
    <div className="empty">
      <Heading>{title}</Heading>
      {children}
    </div>
  )
}

/** Grey lines in place of content that is being loaded; they appear after 200 ms. */
export function Skeleton({ lines = 4 }: { readonly lines?: number }): ReactNode {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <i key={index} style={{ width: `${[72, 48, 86, 60, 40][index % 5]}%` }} />
      ))}
    </div>
  )
}
