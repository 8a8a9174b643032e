package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// mostAgents is how many agents are remembered; those seen last.
const mostAgents = 10_000

// AgentRow is an evaluation agent that has registered at some time.
type AgentRow struct {
	ClientID string
	// What it said when it registered last.
	Version        string
	Tools          []string
	MaxConcurrency int
	Address        string
	// FirstSeen and LastSeen are set by the store: when it registered first and last.
	FirstSeen, LastSeen time.Time
}

// SawAgent notes that an agent has registered. The 10,000 that were seen last are kept.
func (s *Store) SawAgent(ctx context.Context, row AgentRow) error {
	tools := row.Tools
	if tools == nil {
		tools = []string{}
	}
	list, err := json.Marshal(tools)
	if err != nil {
		return err
	}
	now := milliseconds(s.now())
	_, err = s.write.ExecContext(ctx, "INSERT INTO agents (client_id, version, tools, max_concurrency, address, first_seen, last_seen) VALUES (?, ?, ?, ?, ?, ?, ?)"+
		" ON CONFLICT DO UPDATE SET version = excluded.version, tools = excluded.tools, max_concurrency = excluded.max_concurrency,"+
		" address = excluded.address, last_seen = excluded.last_seen",
		row.ClientID, row.Version, string(list), row.MaxConcurrency, row.Address, now, now)
	if err != nil {
		return s.explain(err)
	}
	return s.explain(pruneAgents(ctx, s.write, s.agentsSeen.Add(1)))
}

// pruneAgents forgets the agents that were not seen for the longest time. It looks once
// in a hundred calls, because counting rows reads all of them.
func pruneAgents(ctx context.Context, db *sql.DB, seen int64) error {
	if seen%100 != 1 {
		return nil
	}
	_, err := db.ExecContext(ctx, "DELETE FROM agents WHERE client_id IN (SELECT client_id FROM agents ORDER BY last_seen DESC LIMIT -1 OFFSET ?)", mostAgents)
	return err
}

// Agents lists the agents that have registered, the one seen last first.
func (s *Store) Agents(ctx context.Context) ([]AgentRow, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT client_id, version, tools, max_concurrency, address, first_seen, last_seen FROM agents ORDER BY last_seen DESC, client_id")
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var list []AgentRow
	for rows.Next() {
		var row AgentRow
		var tools string
		var first, last int64
		if err := rows.Scan(&row.ClientID, &row.Version, &tools, &row.MaxConcurrency, &row.Address, &first, &last); err != nil {
			return nil, s.explain(err)
		}
		if err := json.Unmarshal([]byte(tools), &row.Tools); err != nil {
			return nil, s.explain(err)
		}
		row.FirstSeen, row.LastSeen = time.UnixMilli(first), time.UnixMilli(last)
		list = append(list, row)
	}
	return list, s.explain(rows.Err())
}
