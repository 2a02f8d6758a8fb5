import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { Shell } from './shell/shell.tsx'
import { listenToInput } from './state/keys.ts'
import { createStudio, StudioContext } from './state/studio.ts'

// This file is served as `<prefix>/studio/assets/….js`, so its own address tells the prefix.
const here = import.meta.url
const base = new URL('../', here).pathname
const url = new URL('../../', here).href.replace(/\/$/, '')
const studio = createStudio(url)

listenToInput()

createRoot(document.querySelector('#studio')!).render(
  <StrictMode>
    <StudioContext value={studio}>
      <Router base={base.replace(/\/$/, '')}>
        <Shell />
      </Router>
    </StudioContext>
  </StrictMode>,
)
