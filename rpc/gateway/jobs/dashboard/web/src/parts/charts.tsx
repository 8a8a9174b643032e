import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlotType from 'uplot';
import { dollars, duration, percent, plural, when } from '../format';
import { useStore } from '../net/store';
import { themed } from '../theme';
import type { Point } from './measures';

interface Chart {
  title: string;
  series: { label: string; of(p: Point): number | null; band?: [low: (p: Point) => number | null, high: (p: Point) => number | null] }[];
  text(x: number): string;
  range?: [number, number];
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

const CHARTS: Chart[] = [
  { title: 'Pass rate', text: percent, range: [0, 1], series: [{ label: 'trials, 95 % interval', of: (p) => p.rate, band: [(p) => p.low, (p) => p.high] }] },
  { title: 'Time of counted trials', text: duration, series: [{ label: 'median', of: (p) => p.latency }, { label: '95th percentile', of: (p) => p.slow }] },
  { title: 'Tokens written per second of trials', text: (x) => compact.format(x), series: [{ label: 'output tokens per second', of: (p) => p.speed }] },
  { title: 'Cost', text: dollars, series: [{ label: 'US dollars per run', of: (p) => p.cost }] },
];

type Library = typeof uPlotType;

/** Charts of the runs of a suite. */
export function Charts({ points, waiting }: { points: Point[]; waiting: number }) {
  const [library, setLibrary] = useState<Library | null>(null);
  useEffect(() => {
    void import('./uplot').then((m) => setLibrary(() => m.default)); // other pages do not need it
  }, []);
  return (
    <section class="block" aria-labelledby="charts-title">
      <div class="bar">
        <h2 id="charts-title">Charts</h2>
        <p class="quiet" role="status">
          {plural(points.length, 'completed run')}
          {waiting > 0 && `, loading ${waiting} more…`}
        </p>
      </div>
      <div class="charts" data-testid="charts">
        {CHARTS.map((c) => (
          <figure key={c.title}>
            <figcaption>{c.title}</figcaption>
            {library && points.some((p) => c.series[0]!.of(p) !== null) ? (
              <One library={library} chart={c} points={points} />
            ) : (
              <p class="quiet none">{library && waiting === 0 ? 'No data for these runs.' : ''}</p>
            )}
          </figure>
        ))}
      </div>
    </section>
  );
}

/** Describes the chart for screen readers. */
function summary(c: Chart, points: Point[]): string {
  const values = points.map(c.series[0]!.of).filter((x) => x !== null);
  const last = values.at(-1);
  return last === undefined ? c.title : `${c.title} of ${plural(values.length, 'run')}: from ${c.text(Math.min(...values))} to ${c.text(Math.max(...values))}, last ${c.text(last)}`;
}

function One({ library, chart, points }: { library: Library; chart: Chart; points: Point[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const theme = useStore(themed);
  useEffect(() => {
    const b = box.current;
    if (!b) return undefined;
    const plot = draw(library, b, chart, points, setAt);
    const watch = new ResizeObserver(() => plot.setSize({ width: b.clientWidth, height: 150 }));
    watch.observe(b);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [library, chart, points.length, points.at(-1)?.runId, theme]);
  const p = points[at ?? points.length - 1];
  return (
    <>
      <div ref={box} class="plot" role="img" aria-label={summary(chart, points)} />
      <p class="quiet legend">
        {p && <span>{when(p.startedAt)}</span>}
        {p && chart.series.map((s, i) => {
          const x = s.of(p);
          const band = s.band && [s.band[0](p), s.band[1](p)];
          return (
            <span key={s.label}>
              <i class={`key k${i}`} aria-hidden="true" /> {s.label} <b>{x === null ? '–' : chart.text(x)}</b>
              {band && band[0] != null && band[1] != null && ` (${chart.text(band[0])} to ${chart.text(band[1])})`}
            </span>
          );
        })}
      </p>
    </>
  );
}

function draw(Plot: Library, box: HTMLElement, chart: Chart, points: Point[], choose: (i: number | null) => void): uPlotType {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const data: (number | null)[][] = [points.map((_, i) => i + 1)];
  const series: uPlotType.Series[] = [{}];
  const bands: uPlotType.Band[] = [];
  chart.series.forEach((s, i) => {
    const stroke = color(i === 0 ? '--chart-1' : '--chart-2');
    if (s.band) {
      data.push(points.map(s.band[1]), points.map(s.band[0]));
      bands.push({ series: [series.length, series.length + 1], fill: color('--chart-band') });
      series.push({ stroke: 'transparent', points: { show: false } }, { stroke: 'transparent', points: { show: false } });
    }
    data.push(points.map(s.of));
    series.push({ stroke, width: 1.5, spanGaps: true, points: { show: points.length < 40, size: 5, fill: stroke } });
  });
  const axis = { stroke: color('--quiet'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
  const most = Math.max(0, ...data.slice(1).flat().map((x) => x ?? 0));
  return new Plot(
    {
      width: box.clientWidth,
      height: 150,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] }, y: { range: chart.range ?? [0, most * 1.1 || 1] } },
      axes: [
        { ...axis, size: 22, grid: { show: false }, values: (_, at) => at.map((x) => (Number.isInteger(x) && points[x - 1] ? when(points[x - 1]!.startedAt).replace(/ \d\d:\d\d$/, '') : '')), space: 70 },
        { ...axis, size: 54, values: (_, at) => at.map(chart.text), space: 30 },
      ],
      series,
      bands,
      hooks: { setCursor: [(u) => choose(u.cursor.idx ?? null)] },
    },
    data as uPlotType.AlignedData,
    box,
  );
}
