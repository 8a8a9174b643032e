import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { themed } from '../theme';
import { useStore } from '../net/store';
import { ERROR, FAILED, PASSED, PENDING, RUNNING, STATES, TIMEOUT, type Model, type Task } from './model';

const RANKS = [ERROR, FAILED, TIMEOUT, RUNNING];

/** Returns the displayed state of a task: the worst of its trials. */
function stateOf(t: Task | undefined): number {
  if (!t) return PENDING;
  for (const s of RANKS) if (t.trials.includes(s)) return s;
  return t.verdict === PENDING && t.trials.some((s) => s === PASSED) ? RUNNING : t.verdict;
}

/** Shows all tasks at a glance, each as a small square. The table below has the same contents for keyboards and screen readers. */
export function TaskMap({ model, version, choose }: { model: Model; version: number; choose(row: number): void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const theme = useStore(themed);
  const size = model.totalTasks > 2000 ? 5 : model.totalTasks > 500 ? 8 : 11;
  const perLine = Math.max(1, Math.floor(width / size));
  const height = Math.ceil(model.totalTasks / perLine) * size;

  useLayoutEffect(() => {
    const c = canvas.current;
    if (!c) return undefined;
    const watch = new ResizeObserver(() => setWidth(c.parentElement?.clientWidth ?? 0));
    watch.observe(c.parentElement!);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const c = canvas.current;
    const g = c?.getContext('2d');
    if (!c || !g || width === 0) return;
    const scale = window.devicePixelRatio || 1;
    c.width = width * scale;
    c.height = height * scale;
    g.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colors = STATES.map((s) => style.getPropertyValue(`--s-${s.replace('_', '-')}`));
    const places: number[][] = STATES.map(() => []);
    for (let i = 0; i < model.totalTasks; i++) places[stateOf(model.tasks[i])]!.push(i);
    places.forEach((list, s) => {
      g.fillStyle = colors[s]!;
      for (const i of list) g.fillRect((i % perLine) * size, Math.floor(i / perLine) * size, size - 1, size - 1);
    });
  }, [model, version, width, height, theme]);

  return (
    <div class="map">
      <canvas
        ref={canvas}
        aria-hidden="true"
        style={{ height: `${height}px` }}
        onClick={(e) => {
          const row = Math.floor(e.offsetY / size) * perLine + Math.floor(e.offsetX / size);
          if (row < model.totalTasks) choose(row);
        }}
      />
    </div>
  );
}
